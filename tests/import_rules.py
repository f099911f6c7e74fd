"""The one kind of import contract that import-linter lacks: a closed list of what is allowed.

A list of what is forbidden grows stale with every new library; a list of what is
allowed fails on anything that nobody thought of.  A contract that names a module
which does not exist fails too, so that no rule outlives what it guards.
"""

import sys
from typing import cast

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output

STANDARD_LIBRARY = "the standard library"
"""Stands in `may_import` for all of it."""


class AllowedContract(Contract):
    """`modules`, and all below them, import `may_import`, and all below those, and nothing else.

    What stands in `apart_from`, or below, may import anything, and those others may not import it.
    """

    type_name = "allowed"

    modules = fields.ListField(subfield=fields.StringField())
    may_import = fields.ListField(subfield=fields.StringField())
    apart_from = fields.ListField(subfield=fields.StringField(), required=False, default=[])

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002
        """Every broken line, in order; unknown modules are broken lines as well."""
        named = self._names("modules") + self._names("apart_from")
        broken = [f"{name} does not exist" for name in named if name not in graph.modules]
        if not broken:
            broken = list(self._broken_imports(graph))
        return ContractCheck(kept=not broken, metadata={"broken": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print them."""
        for line in cast("list[str]", check.metadata["broken"]):
            output.print_error(f"- {line}", bold=False)
        output.new_line()

    def _names(self, field: str) -> list[str]:
        return cast("list[str]", getattr(self, field))

    def _broken_imports(self, graph: ImportGraph) -> list[str]:
        bound = {
            name
            for module in self._names("modules")
            for name in {module} | graph.find_descendants(module)
            if not _below(name, self._names("apart_from"))
        }
        return [
            f"{importer} imports {imported}"
            for importer in sorted(bound)
            for imported in sorted(graph.find_modules_directly_imported_by(importer))
            if not self._may(imported)
        ]

    def _may(self, imported: str) -> bool:
        if _below(imported, self._names("apart_from")):
            return False
        allowed = self._names("may_import")
        standard = STANDARD_LIBRARY in allowed and imported in sys.stdlib_module_names
        return standard or _below(imported, allowed)


def _below(name: str, packages: list[str]) -> bool:
    return any(f"{name}.".startswith(f"{package}.") for package in packages)
