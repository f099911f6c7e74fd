"""What one client root knows of the hosts it asks, across modules, threads and processes.

`memory`: who failed lately, and is asked last for a while.  `budget`: how many connections a
host is given at a time.  Neither knows what is asked, nor how.
"""

from huai_client.hosts.budget import Budget, BudgetError
from huai_client.hosts.hosts import Hosts, service_of
from huai_client.hosts.memory import Failing, Memory

__all__ = ["Budget", "BudgetError", "Failing", "Hosts", "Memory", "service_of"]
