"""Asks for each repository whose pointers change whether it is to be believed.

Knows no transfer and publishes nothing: it says which paths have to wait.  Nothing in the tree was
changed by then, so a run that is killed here leaves what was staged, and the next one asks again.
What a program is shown is a folder of its own, made anew for each repository.
"""

import os
import shutil
import time
from collections.abc import Callable, Sequence
from functools import partial

from huai_client.config.mirror import Mirror
from huai_client.config.proofs import Proof
from huai_client.metadata.commit import Commit
from huai_client.plan.build import order_without_upstream
from huai_client.plan.operations import Plan
from huai_client.plan.profiles.load import profiles
from huai_client.proofs.changed import Changed, find_changed
from huai_client.proofs.gpgv import refusal
from huai_client.proofs.proved import Proved
from huai_client.proofs.shown import Shown, lay_out, shown
from huai_client.tree import PathError, View
from huai_program.durations import seconds
from huai_program.programs import environment, run_program
from huai_schema.entries import File
from huai_schema.paths import relative


class Prover:
    """The proofs of one module."""

    def __init__(self, mirror: Mirror) -> None:
        """Starts nothing."""
        self._mirror = mirror
        self._proofs = mirror.config.proofs
        self._folder = mirror.paths.proving

    def prove(
        self,
        commit: Commit,
        plan: Plan,
        content: tuple[View, Callable[[File], tuple[int, bytes] | None]],
        hear: Callable[[str], None],
    ) -> list[Proved]:
        """One after the other, each repository of a profile with a proof in which pointers change.

        `content`: the tree, and what says where the content of a file of `plan` is, if it is whole.
        `hear` is called with each line that a command prints; what gpgv says is judged instead.
        """
        order = order_without_upstream(self._mirror.config, commit)
        found: list[Proved] = []
        for changed in find_changed(plan, order, self._proofs):
            began = time.monotonic()
            self._clear()
            try:
                visible = shown(changed, plan, order, *content)
                failure = self._ask(changed, visible, commit, hear)
            except (OSError, PathError) as error:
                failure = f"it cannot be shown to a program: {error}"
            finally:
                self._clear()
            paths, took = frozenset(changed.entries), time.monotonic() - began
            found.append(Proved(changed.repository, paths, took, failure))
        return found

    def _clear(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _ask(
        self, changed: Changed, visible: Shown, commit: Commit, hear: Callable[[str], None]
    ) -> str:
        """Why `changed` is refused."""
        proof = self._proofs[changed.repository.profile]
        if proof.keyrings:
            signed = profiles()[changed.repository.profile].signed
            # What gpgv quotes of a file must not pass for its status.
            run = partial(self._run, proof, {}, "/", hear_errors=lambda _: None)
            return refusal(changed, visible, signed, proof.keyrings, run)
        top = changed.repository.top
        tree, names = self._folder / "tree", self._folder / "changed"
        lay_out(visible, top, tree)
        new = sorted(visible.keys() & visible.changed)
        names.write_bytes(b"".join(relative(path, top) + b"\0" for path in new))
        own = {
            "HUAI_MODULE": self._mirror.name,
            "HUAI_DEST": self._mirror.config.dest,
            "HUAI_CLIENT_ROOT": str(self._mirror.root),
            "HUAI_COMMIT": commit.id,
            "HUAI_SERIAL": str(commit.info.serial),
            "HUAI_PROFILE": changed.repository.profile,
            "HUAI_REPOSITORY": os.fsdecode(top) or ".",
            "HUAI_CHANGED_LIST": str(names),
        }
        return self._run(proof, own, str(tree), proof.words, hear)

    def _run(
        self,
        proof: Proof,
        variables: dict[str, str],
        folder: str,
        command: Sequence[str],
        hear: Callable[[str], None],
        hear_errors: Callable[[str], None] | None = None,
    ) -> str:
        return run_program(
            command,
            environment(os.environ, variables),
            seconds=seconds(proof.timeout),
            hear=hear,
            hear_errors=hear_errors,
            folder=folder,
        )
