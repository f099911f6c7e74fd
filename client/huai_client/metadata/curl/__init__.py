"""libcurl, for metadata and content.

    head        status and headers, values of headers, the target of a redirect (pure)
    errors      the numbers of libcurl's errors (pure)
    handle      one transfer: certificates, proxy, permitted addresses
    loop        concurrent transfers, by epoll
    exchange    a request, and its response read piece by piece

The last three load libcurl, which takes 20 ms: import them where a request is sent.
"""
