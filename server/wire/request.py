"""Which dialect a request speaks, and a structured one as the flat parameters that all else reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from core.errors import BadQuery
from server.params import Params
from server.wire import DIALECTS, PROTOCOLS

# Contract 4.1: where each parameter is in a structured request. Of two places of one, the first given holds.
PLACES: Mapping[str, str] = {
    "query.text": "query",
    "query.site": "site",
    "query.decontextualized_query": "decontextualized_query",
    "query.num_results": "num_results",
    "query.max_results": "max_results",
    "query.min_score": "min_score",
    "query.item_type": "item_type",
    "query.required_item_type": "required_item_type",
    "query.tool": "tool",
    "query.tags": "tags",
    "query.filters": "filters",
    "context.prev": "prev",
    "context.last_answers": "last_ans",
    "context.url": "context_url",
    "context.text": "context_description",
    "context.memory": "memory",
    "context.near": "near",
    "prefer.mode": "mode",
    "prefer.streaming": "streaming",
    "prefer.provisional": "provisional",
    "prefer.accept-language": "accept_language",
    "prefer.response_format": "response_format",
    "prefer.respond_async": "respond_async",
    "meta.query_id": "query_id",
    "meta.session_context.conversation_id": "conversation_id",
    "meta.start_num": "start_num",
    "query.start_num": "start_num",
    "meta.remember": "remember",
    "meta.debug": "debug",
    "meta.version": "version",
    "meta.api_version": "api_version",
}
PARTS = ("query", "context", "prefer", "meta")


def flattened(params: Params) -> Params:
    """The same parameters with those of a structured request at their flat names; they go over flat ones.

    Raises BadQuery for an unknown key under `query`, and for a part that is no object.
    """
    query = params.raw("query")
    # The version may also stand beside a question that is a text: it says in what dialect to answer.
    parts = PARTS if isinstance(query, Mapping) else ("meta",) * isinstance(params.raw("meta"), Mapping)
    found: dict[str, tuple[str, Any]] = {}
    for place, value in _placed(params, parts):
        found.setdefault(PLACES[place], (place, value))
    flat = {name: [value] for name, (_, value) in found.items()}
    if isinstance(query, Mapping):
        if unknown := sorted(
            set(query) - {p.removeprefix("query.") for p in PLACES if p.startswith("query.")}
        ):
            field = f"query.{unknown[0]}"[:80]
            raise BadQuery(f"there is no `{field}`", field=field)
        flat.setdefault("query", [])
        found.setdefault("query", ("query.text", None))
        if "prev" in flat:
            flat["prev"] = [_questions(flat["prev"][0])]
    return params.over(flat, {name: place for name, (place, _) in found.items()})


def dialect_of(params: Params, *, structured: bool) -> str:
    """The name of the dialect to answer in, from flat parameters and the shape of the request.

    Raises BadQuery for a protocol or version that is not spoken here.
    """
    protocol = params.text("protocol", limit=40)
    version = params.text("version", limit=40)
    if protocol and protocol not in PROTOCOLS:
        raise BadQuery(f"`protocol` must be one of {', '.join(PROTOCOLS)}", field="protocol")
    if protocol.startswith("legacy"):
        return PROTOCOLS[protocol]
    if version:
        if f"structured-{version}" not in DIALECTS:
            known = ", ".join(sorted(n.removeprefix("structured-") for n in DIALECTS if "structured" in n))
            raise BadQuery(f"`version` must be one of {known}", field="version")
        return f"structured-{version}"
    if not (protocol or structured):
        # The name that a mode had in NLWeb's clients of 2025, and in theirs only.
        return "legacy" if params.raw("generate_mode") is None else "legacy-2025"
    # The version of an interface, by NLWeb's strict clients: a hint, where it names a version spoken here.
    hinted = f"structured-{params.first('api_version')}"
    return hinted if hinted in DIALECTS else PROTOCOLS["structured"]


def _placed(params: Params, parts: Sequence[str]) -> Iterator[tuple[str, Any]]:
    for place in PLACES:
        part, *path = place.split(".")
        if part not in parts:
            continue
        value = params.raw(part)
        for n, key in enumerate(path):
            if value is None:
                break
            if not isinstance(value, Mapping):
                field = ".".join([part, *path[:n]])
                raise BadQuery(f"`{field}` must be an object", field=field)
            value = value.get(key)
        if value is not None:
            yield place, value


def _questions(prev: Any) -> Any:
    """Earlier questions as texts: NLWeb's clients of 2026 send back whole query objects."""
    if not isinstance(prev, list):
        return prev
    return [_question(one) for one in prev]


def _question(one: Any) -> Any:
    while isinstance(one, Mapping):
        one = one.get("query", one.get("text"))
    return one
