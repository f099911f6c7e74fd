"""A kind of import contract that import-linter lacks: a closed list of allowed imports.

A list of forbidden imports grows stale with every new library; a list of allowed ones fails on any
new import.  A contract about a module that does not exist fails, too, so that no rule outlives its
modules.
"""

import sys
from typing import cast

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output

STANDARD_LIBRARY = "the standard library"
"""The word in `may_import` for all of its modules."""


class AllowedContract(Contract):
    """A contract by which `modules` and all below import only `may_import` and all below.

    Modules in or below `apart_from` may import anything, and the others may not import them.
    """

    type_name = "allowed"

    modules = fields.ListField(subfield=fields.StringField())
    may_import = fields.ListField(subfield=fields.StringField())
    apart_from = fields.ListField(subfield=fields.StringField(), required=False, default=[])

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002
        """Find the forbidden imports, in order; an unknown module is a fault as well."""
        modules = self._names("modules") + self._names("apart_from")
        broken = [f"{name} does not exist" for name in modules if name not in graph.modules]
        if not broken:
            broken = list(self._broken_imports(graph))
        return ContractCheck(kept=not broken, metadata={"broken": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print the faults."""
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
