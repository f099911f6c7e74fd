"""What one client root knows of the hosts it asks, across modules, threads and processes.

`health`: who failed lately, and is asked last for a while.  `connections`: how many connections a
host is given at a time.  Neither knows what is asked, nor how.
"""

from huai_client.state.hosts.connections import ConnectionLimit, ConnectionLimitError
from huai_client.state.hosts.health import Failing, UpstreamHealth
from huai_client.state.hosts.hosts import Hosts, service_of

__all__ = [
    "ConnectionLimit",
    "ConnectionLimitError",
    "Failing",
    "Hosts",
    "UpstreamHealth",
    "service_of",
]
