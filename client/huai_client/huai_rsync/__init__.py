"""`huai-rsync`: rsync's command line, carried out by huai if the source is a huai upstream.

    environment                      the environment variables
    options, parse                   from the arguments to a `request`: data and pure functions
    modules, filters                 the module of a request, and the part to mirror
    eligibility                      the check that huai can carry out a request
    discovery, cache                 upstreams that are not configured; values kept between calls
    sync                             a sync that prints and ends as rsync does, by means of
    console, itemize, log, stats, exit_codes
    exec_rsync                       the real rsync, in place of this program
    main                             composes them

Rule to keep: the real rsync carries out calls that are not fully understood, unchanged.
"""
