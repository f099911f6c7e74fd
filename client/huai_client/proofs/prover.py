"""The proof of each repository whose pointers change.

Transfers and publishes nothing: it returns the paths that have to wait.  Nothing in the tree is
changed by then, so a run that is killed here leaves the staged files, and the next one proves them
again.  A program gets a separate folder, made for each repository.
"""

import os
import shutil
import time
from collections.abc import Callable, Sequence
from functools import partial

from huai_client.config.hooks import Proof
from huai_client.config.mirror import Mirror
from huai_client.metadata.commit import Commit
from huai_client.plan.build import order_without_upstream
from huai_client.plan.operations import Plan
from huai_client.plan.profiles import profiles
from huai_client.proofs.gpgv import refusal
from huai_client.proofs.proved import Proved
from huai_client.proofs.shown import Changed, RepositoryView, build_view, find_changed, lay_out
from huai_client.tree import PathError, View
from huai_program.durations import seconds
from huai_program.programs import environment, run_program
from huai_schema.entries import File
from huai_schema.paths import relative


class Prover:
    """A prover of changed package repositories, before their pointers are published."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self._proofs = mirror.config.proofs
        self._folder = mirror.paths.proving

    def prove(
        self,
        commit: Commit,
        plan: Plan,
        content: tuple[View, Callable[[File], tuple[int, bytes] | None]],
        on_line: Callable[[str], None],
    ) -> list[Proved]:
        """Prove each repository in which pointers change, of profiles with a proof.

        Returns a result for each of them, good or not.  `content` is the tree, and a function that
        finds the complete staged content of a file.  `on_line` is called with each line that a
        command prints, except gpgv.
        """
        order = order_without_upstream(self._mirror.config, commit)
        results: list[Proved] = []
        for changed in find_changed(plan, order, self._proofs):
            began = time.monotonic()
            self._clear()
            try:
                visible = build_view(changed, plan, order, *content)
                failure = self._refusal(changed, visible, commit, on_line)
            except (OSError, PathError) as error:
                failure = f"its files cannot be laid out for a program: {error}"
            finally:
                self._clear()
            paths, seconds = frozenset(changed.entries), time.monotonic() - began
            results.append(Proved(changed.repository, paths, seconds, failure))
        return results

    def _clear(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _refusal(
        self,
        changed: Changed,
        visible: RepositoryView,
        commit: Commit,
        on_line: Callable[[str], None],
    ) -> str:
        """Run gpgv, or the command in a folder made for it; return why it refuses, or empty."""
        proof = self._proofs[changed.repository.profile]
        if proof.keyrings:
            signed = profiles()[changed.repository.profile].signed
            # gpgv's quotes of a file must not be read as its status.
            run = partial(self._run, proof, {}, "/", on_error_line=lambda _: None)
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
        return self._run(proof, own, str(tree), proof.words, on_line)

    def _run(
        self,
        proof: Proof,
        variables: dict[str, str],
        folder: str,
        command: Sequence[str],
        on_line: Callable[[str], None],
        on_error_line: Callable[[str], None] | None = None,
    ) -> str:
        """Run a program within the time limit of `proof`; return why it failed, or empty.

        In the directory `folder`, with `variables`; `on_line` gets its lines, those of standard
        error as well without `on_error_line`.
        """
        return run_program(
            command,
            environment(os.environ, variables),
            seconds=seconds(proof.timeout),
            on_line=on_line,
            on_error_line=on_error_line,
            folder=folder,
        )
