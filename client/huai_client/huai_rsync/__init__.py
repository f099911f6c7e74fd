"""`huai-rsync`: rsync's command line, carried out by huai if the source is a huai upstream.

    environment                      the environment variables, and the exit codes
    options, parse                   from the arguments to a `request`: data and pure functions
    eligibility                      the module of a request, and whether huai can carry it out
    filters                          the part to mirror
    discovery, cache                 upstreams that are not configured; values kept between calls
    sync                             a sync that prints and ends as rsync does, by means of
    console, itemize, log, stats
    exec_rsync                       the real rsync, in place of this program
    main                             composes them

Rule to keep: the real rsync carries out calls that are not fully understood, unchanged.
"""
