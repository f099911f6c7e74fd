"""`huai-rsync`: takes rsync's command line, and runs huai where the source is a huai upstream.

    environment                      what the environment says
    options, tokenize, parse         what the arguments say, as a `request`: data and pure functions
    source, modules, filters         which module they mean, and what of it
    eligibility                      whether huai does it
    discovery, cache                 upstreams that are not configured, and what is kept of calls
    sync                             a sync that talks and ends as rsync does, by means of
    console, itemize, log, stats, entry_count, numbers, exit_codes
    exec_rsync                       the real rsync, in place of this program
    main                             composes them

Rule to keep: what is not fully understood is the real rsync's, with the very same arguments.
"""
