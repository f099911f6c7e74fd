"""What a sync must not do to a tree: touch what is protected, delete more than is allowed.

`Firewall` is the door; `protection` says which paths are protected, `holding` which directories
hold one, `shield` keeps plans away from them, `undeletable` what one run may not delete,
`limits` counts deletions by directory.
"""

from huai_client.plan.guard.guard import Firewall

__all__ = ["Firewall"]
