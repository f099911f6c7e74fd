"""What one client root knows of the hosts it asks, across modules, threads and processes.

`memory`: who failed lately, and is asked last for a while.  `budget`: how many connections a
host is given at a time.  Neither knows what is asked, nor how.
"""

from huai_client.state.hosts.connections import Budget, BudgetError
from huai_client.state.hosts.health import Failing, Memory
from huai_client.state.hosts.hosts import Hosts, service_of

__all__ = ["Budget", "BudgetError", "Failing", "Hosts", "Memory", "service_of"]
