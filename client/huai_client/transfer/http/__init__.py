"""Content over HTTP: whole files and pieces of files, many requests at a time, by libcurl.

    address     a path as an address (pure)
    answer      what an answer means for the bytes that were asked for (pure)
    failure     what libcurl's errors mean (pure)
    login       what our own URLs are sent beside the question
    job         the bytes that are asked for, and how far they have come
    requests    one request of libcurl: headers judged, bytes counted, handed to its job
    connections many requests on few connections, until all is done
    targets     the files that are written, below the folder of a run
    attempt     one attempt at a batch
    ranges      pieces of one file
    probe       whether anything answers

Rules to keep.  No byte is taken that was not asked for.  Nothing here decides that a file is right:
the staging area does, by its digest.  Nothing here is imported unless a URL of HTTP is asked, as
loading libcurl takes longer than many a sync.
"""
