"""The JSON API, version 1: the modules, and the newest commit of each.

The pydantic models below define the responses.  Additions are compatible, anything else needs
`/api/v2`.
"""

import logging
import time
from typing import Annotated

from fastapi import APIRouter, Header, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from huai_schema.errors import HuaiError
from huai_server.http.access import Access
from huai_server.http.asgi.conditions import names_weakly
from huai_server.http.module_facts import ModuleFacts
from huai_server.store.repository import Head

_PROBLEM = "its metadata cannot be read; the server's log says why"
_log = logging.getLogger(__name__)


class Model(BaseModel):
    """A response, or a part of one."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class TotalsModel(Model):
    """The totals of one snapshot."""

    files: int
    directories: int
    symlinks: int
    bytes: int = Field(description="sum of the sizes of all regular files")
    entries: int


class ModuleModel(Model):
    """A module.  Everything about its commit is null before the first one."""

    name: str
    git: str = Field(description="path of its metadata repository on this server")
    commit: str | None = None
    tree: str | None = None
    serial: int | None = None
    totals: TotalsModel | None = None
    skipped: int | None = Field(default=None, description="paths that no snapshot can hold")
    committed: int | None = Field(default=None, description="seconds since the epoch")
    age: int | None = Field(default=None, description="seconds since then")
    damaged: int = Field(default=0, description="files that the last scrub found damaged")
    problem: str | None = Field(default=None, description="why the commit cannot be read")


class ModulesModel(Model):
    """All modules, by name."""

    modules: list[ModuleModel]


class ErrorModel(Model):
    """The reason why a request was not served."""

    error: str
    hint: str


def router(facts: ModuleFacts, access: Access) -> APIRouter:
    """Return the routes `/api/v1/modules` and `/api/v1/modules/NAME`."""
    routes = APIRouter(prefix="/api/v1", tags=["modules"])

    @routes.get("/modules")
    async def modules(request: Request) -> ModulesModel:
        """All modules, sorted by name; private ones only with a token for them."""
        names = sorted(access.modules(request.scope))
        return ModulesModel(modules=[await _module_or_problem(facts, name) for name in names])

    @routes.get(
        "/modules/{name}",
        response_model=ModuleModel,
        responses={
            304: {"description": "it has no newer commit than the request names"},
            404: {"model": ErrorModel},
        },
    )
    async def module(
        name: str,
        request: Request,
        response: Response,
        if_none_match: Annotated[str | None, Header()] = None,
    ) -> ModuleModel | Response:
        """A module; with `If-None-Match`, 304 as long as it has no newer commit."""
        access.repository(request.scope, name)
        head = await facts.head(name)
        damaged = facts.damaged(name)
        state = head.commit if head else "none"
        etag = f'W/"{state}-{damaged}"' if damaged else f'W/"{state}"'
        headers = {"ETag": etag, "Cache-Control": "no-cache"}
        if if_none_match is not None and names_weakly(if_none_match, etag):
            return Response(status_code=304, headers=headers)
        response.headers.update(headers)
        return describe(name, head, damaged)

    return routes


def describe(name: str, head: Head | None, damaged: int) -> ModuleModel:
    """Return a module with the newest commit `head`, its age, and the number of `damaged` files.

    Without a commit its fields are null.
    """
    git = f"/git/{name}.git"
    if head is None:
        return ModuleModel(name=name, git=git, damaged=damaged)
    totals = head.info.totals
    return ModuleModel(
        name=name,
        git=git,
        commit=head.commit,
        tree=head.tree,
        serial=head.info.serial,
        totals=TotalsModel(**totals._asdict(), entries=totals.entries),
        skipped=head.info.skipped,
        committed=head.time,
        age=max(0, int(time.time()) - head.time),
        damaged=damaged,
    )


async def _module_or_problem(facts: ModuleFacts, name: str) -> ModuleModel:
    """Return a module; with a damaged repository it has a `problem`, and the error is logged."""
    try:
        return describe(name, await facts.head(name), facts.damaged(name))
    except HuaiError as error:
        # The message holds paths of this machine, so only the log gets it.
        _log.warning("%s: %s", name, error.message)
        return ModuleModel(name=name, git=f"/git/{name}.git", problem=_PROBLEM)
