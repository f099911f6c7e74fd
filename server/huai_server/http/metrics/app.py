"""`/metrics`: the state of a server, in the requested format."""

from fastapi import APIRouter, Request, Response
from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from prometheus_client.exposition import choose_encoder

from huai_schema.errors import HuaiError
from huai_server.http.access import Access
from huai_server.http.api import Heads
from huai_server.http.metrics.collector import Module, ServerCollector, Sources
from huai_server.http.module_facts import ModuleFacts


def router(heads: Heads, facts: ModuleFacts, sources: Sources, access: Access) -> APIRouter:
    """Return the route."""
    routes = APIRouter(tags=["health"])

    @routes.get("/metrics", response_class=Response, responses={200: {"content": _TEXT}})
    async def metrics(request: Request) -> Response:
        """Metrics for Prometheus: as its text, or as OpenMetrics."""
        modules = {
            name: await _module(heads, facts, name)
            for name in sorted(access.modules(request.scope, "metrics"))
        }
        registry = CollectorRegistry()
        registry.register(ServerCollector(sources, modules))
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        encode, media_type = choose_encoder(request.headers.get("accept", ""))
        headers = {"Content-Type": media_type, "Cache-Control": "no-store", "Vary": "Accept"}
        return Response(encode(registry), headers=headers)

    return routes


_TEXT = {"text/plain": {"schema": {"type": "string"}}}


async def _module(heads: Heads, facts: ModuleFacts, name: str) -> Module:
    damaged, clients = heads.damaged(name), facts.fallback_clients(name)
    try:
        head = await heads.read(name)
    except HuaiError:
        return Module(None, readable=False, damaged=damaged, fallback_clients=clients)
    undigested = await facts.undigested(name, head) if head else None
    return Module(head, True, damaged, undigested, clients)  # noqa: FBT003
