"""Content over HTTP: whole files and pieces of files, many requests at a time, by libcurl.

    verdict     the meaning of a response for the requested bytes (pure)
    failure     the meaning of libcurl's errors (pure)
    login       headers for the administrator's own URLs
    job         the requested bytes, their progress, and the files that are written
    requests    one request of libcurl: headers judged, bytes counted, passed to its job
    connections many requests on few connections, until all jobs are done
    attempt     one attempt at a batch
    ranges      pieces of one file
    probe       a test whether a server responds, and a measurement of its speed

Rules.  No byte is accepted that was not requested.  Nothing here decides that a file is right:
the staging area does, by its digest.  Import this only for a URL of HTTP, as loading libcurl takes
longer than many a sync.
"""
