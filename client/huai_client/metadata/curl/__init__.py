"""libcurl, as metadata and content use it.

    redirection where a redirection may lead (pure)
    head        status and headers, and the values that they have (pure)
    errors      the numbers of libcurl's errors (pure)
    handle      one transfer: certificates, proxy, addresses that it may connect to
    loop        transfers side by side, by epoll
    exchange    a request, and its response read piece by piece

The last three load libcurl, which takes 20 ms: import them where something is requested.
"""
