"""`huai-rsync`: takes rsync's command line, and runs huai where the source is a huai upstream.

    environment                      the environment variables
    options, tokenize, parse         from the arguments to a `request`: data and pure functions
    source, modules, filters         the module that a request is about, and which part of it
    eligibility                      whether huai can do what is asked for
    discovery, cache                 upstreams that are not configured; what is kept between calls
    sync                             a sync that prints and ends as rsync does, by means of
    console, itemize, log, stats, entry_count, numbers, exit_codes
    exec_rsync                       the real rsync, in place of this program
    main                             composes them

Rule to keep: the real rsync carries out what is not fully understood, with the same arguments.
"""
