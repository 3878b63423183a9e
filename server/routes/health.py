"""`/health`: the process lives. `/ready`: it can answer, and how well."""

from __future__ import annotations

from aiohttp import web

from server.auth import caller_of
from server.keys import DATABASE, LIBRARY, PIPELINE, STATE, STORE
from server.middleware import json_response

routes = web.RouteTableDef()


@routes.get("/health")
async def health(_request: web.Request) -> web.Response:
    return json_response({"status": "ok"})


@routes.get("/ready")
async def ready(request: web.Request) -> web.Response:
    """503 while starting, loading the demonstration or draining, or when a store is down.

    What is wrong with a prompt names files, so the operator alone is told; others, that something is.
    """
    app = request.app
    store, database = await app[STORE].ready(), await app[DATABASE].ready()
    state = app[STATE]
    wrong = app[LIBRARY].errors
    told = wrong[:10] if caller_of(request).may("admin") else f"{len(wrong)} problems: ask as an admin"
    checks = {
        "store": "ok" if store else "down",
        "database": "ok" if database else "down",
        "llm": app[PIPELINE].llm,
        "prompts": "ok" if not wrong else told,
    }
    if state.busy or not store or not database:
        status = ", ".join(sorted(state.busy)) or "down"
        return json_response({"status": status, "checks": checks}, status=503)
    if state.doing:
        checks["index"] = ", ".join(sorted(state.doing))
    if trouble := app[PIPELINE].trouble:
        checks["llm_trouble"] = trouble
    degraded = bool(wrong or state.doing or trouble)
    return json_response({"status": "degraded" if degraded else "ready", "checks": checks})
