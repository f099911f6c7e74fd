"""The stages of publication, by number: payload, then indices, then pointers.

Pure.  An index must never name what is not there yet, a pointer never an index that is not.
Which path belongs to which stage is for `publishing.order` to say.
"""

from huai_schema.codec.publish_rules import STAGES

__all__ = ["INDICES", "PAYLOAD", "POINTERS", "STAGES"]

PAYLOAD, INDICES, POINTERS = range(len(STAGES))
