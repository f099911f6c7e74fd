"""Which files of a module change without a commit: as client.toml says, else as is known."""

from huai_client.config import Module
from huai_client.profiles.load import volatile as known_volatile
from huai_schema.codec.descriptor import Descriptor
from huai_schema.codec.publish_rules import (
    VolatileRule,
    own_rules,
    usable_rules,
    volatile_rules,
)


def volatile_files(module: Module, descriptor: Descriptor) -> list[VolatileRule]:
    """Which files change without a commit: what client.toml says, else what is known of them."""
    if module.volatile is not None:
        rules = own_rules(volatile_rules(module.volatile))
    else:
        rules = [*own_rules(module.publish), *usable_rules(descriptor.publish), *known_volatile()]
    return [rule for rule in rules if isinstance(rule, VolatileRule)]
