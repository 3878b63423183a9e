"""`/health`: the process lives. `/ready`: it can answer, and how well."""

from __future__ import annotations

from aiohttp import web

from server.keys import DATABASE, PIPELINE, STATE, STORE
from server.middleware import json_response

routes = web.RouteTableDef()


@routes.get("/health")
async def health(_request: web.Request) -> web.Response:
    return json_response({"status": "ok"})


@routes.get("/ready")
async def ready(request: web.Request) -> web.Response:
    """503 while starting, loading the demonstration or draining, or when a store is down."""
    app = request.app
    store, database = await app[STORE].ready(), await app[DATABASE].ready()
    state = app[STATE]
    checks = {
        "store": "ok" if store else "down",
        "database": "ok" if database else "down",
        "llm": app[PIPELINE].llm,
        "prompts": "ok" if not state.problems else state.problems[:10],
    }
    if state.busy or not store or not database:
        status = ", ".join(sorted(state.busy)) or "down"
        return json_response({"status": status, "checks": checks}, status=503)
    return json_response({"status": "degraded" if state.problems else "ready", "checks": checks})
