"""`huai-rsync`: takes rsync's command line, and runs huai where the source is a huai upstream.

    settings                         what the environment says
    options, words, command_line     what the arguments say, as a `request`: data and pure functions
    source, modules, filtering       which module they mean, and what of it
    choice                           whether huai does it
    discovery, announcement, memory  upstreams that are not configured, and what is kept of calls
    syncing                          a sync that talks and ends as rsync does, by means of
    reporting, names, formats, log, figures, codes
    handover                         the real rsync, in place of this program
    program                          composes them

Rule to keep: what is not fully understood is the real rsync's, with the very same arguments.
"""
