"""Query string or body -> `core.query.Query`: every parameter checked, every error naming its field."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import orjson
from aiohttp import web

from core.errors import BadQuery, UnknownSite
from core.query import MAX_QUERY_CHARS, Identity, Mode, Query, Shown
from core.settings import Settings

MAX_PREV = 200
MAX_MEMORY = 50
ID = re.compile(r"[A-Za-z0-9._:~-]{1,128}")
OFF = frozenset({"false", "0", "off", "no"})
MODES = get_args(Mode)
# Named by the contract, not built yet: said so rather than passed over in silence.
NOT_YET = ("item_type", "required_item_type", "tool", "tags", "filters", "debug")


class Params:
    """Parameters by name, as lists of raw values: strings of a query string, JSON values of a body."""

    def __init__(self, values: Mapping[str, Sequence[Any]]) -> None:
        self._values = values

    def first(self, *names: str) -> Any:
        """The value of the first of these names that is there and not empty; a later one of the same wins."""
        for name in names:
            for value in reversed(self._values.get(name, ())):
                if value is not None and value != "":
                    return value
        return None

    def all(self, name: str) -> Sequence[Any]:
        return self._values.get(name, ())

    def text(self, *names: str, limit: int) -> str:
        value = self.first(*names)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise BadQuery(f"`{names[0]}` must be text", field=names[0])
        if len(value) > limit:
            raise BadQuery(f"`{names[0]}` may have {limit} characters, not {len(value)}", field=names[0])
        return value

    def number(self, name: str, low: int, high: int) -> int | None:
        value = self.first(name)
        if value is None:
            return None
        if isinstance(value, str) and re.fullmatch(r"\s*-?\d{1,9}\s*", value):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise BadQuery(f"`{name}` must be a whole number from {low} to {high}", field=name)
        return value

    def flag(self, name: str, default: bool) -> bool:
        value = self.first(name)
        return default if value is None else str(value).strip().lower() not in OFF


@dataclass(frozen=True, slots=True)
class Asked:
    """A checked question, and how its answer is to travel."""

    query: Query
    streaming: bool


async def read_params(request: web.Request) -> Params:
    """The query string, with a JSON or form body over it. Raises BadQuery for a body that is neither."""
    values: dict[str, list[Any]] = {}
    for name, value in request.query.items():
        values.setdefault(name, []).append(value)
    if request.method == "POST":
        values.update(await _body(request))
    return Params(values)


async def _body(request: web.Request) -> dict[str, list[Any]]:
    if request.content_type in ("application/x-www-form-urlencoded", "multipart/form-data"):
        form = await request.post()
        fields: dict[str, list[Any]] = {}
        for name, value in form.items():
            if not isinstance(value, str):
                raise BadQuery(f"`{name}` is a file: files go to /documents", field=name)
            fields.setdefault(name, []).append(value)
        return fields
    return {name: [value] for name, value in (await json_body(request)).items()}


async def json_body(request: web.Request) -> dict[str, Any]:
    """The body as a JSON object ({} if there is none). Raises BadQuery."""
    raw = await request.read()
    if not raw.strip():
        return {}
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as broken:
        raise BadQuery(f"the body is not valid JSON: {broken}", field="body") from None
    if not isinstance(body, dict):
        raise BadQuery("the body must be a JSON object", field="body")
    return body


def asked_from(
    params: Params,
    *,
    settings: Settings,
    readable: Sequence[str],
    identity: Identity | None,
    remember: bool,
    accept: str,
) -> Asked:
    """The question. Raises BadQuery naming the field, UnknownSite naming the sites there are."""
    given = params.first("query")
    if isinstance(given, Mapping) or str(params.first("protocol") or "legacy") != "legacy":
        raise BadQuery("only the legacy dialect is spoken yet: send `query` as text", field="query")
    text = params.text("query", limit=MAX_QUERY_CHARS).strip()
    if not text:
        raise BadQuery(f"`query` is needed: the question, 1 to {MAX_QUERY_CHARS} characters", field="query")
    for name in NOT_YET:
        if params.first(name) is not None:
            raise BadQuery(f"`{name}` is not available yet", field=name)
    sites, all_sites = sites_from(params.all("site"), readable)
    streaming = params.flag("streaming", default=not _wants_json(accept))
    query = Query(
        text=text,
        query_id=_id(params, "query_id"),
        conversation_id=_id(params, "conversation_id"),
        sites=tuple(sites),
        all_sites=all_sites,
        prev=previous(params.all("prev")),
        last_answers=_last_answers(params.first("last_ans")),
        decontextualized_query=params.text("decontextualized_query", limit=MAX_QUERY_CHARS).strip() or None,
        context_url=params.text("context_url", limit=4000),
        context_text=params.text("context_description", limit=20_000),
        memory=_texts(params.first("memory"), "memory", MAX_MEMORY),
        mode=_mode(params),
        num_results=params.number("num_results", 1, 1000) or settings.retrieval.num_results,
        max_results=params.number("max_results", 1, 100) or settings.ranking.max_results,
        min_score=params.number("min_score", 0, 100),
        start_num=params.number("start_num", 0, 1000) or 0,
        provisional=params.flag("provisional", default=False),
        remember=remember and params.flag("remember", default=True),
        language=_language(params.text("accept_language", limit=100)),
        identity=identity,
    )
    return Asked(query, streaming)


def sites_from(values: Sequence[Any], readable: Sequence[str]) -> tuple[list[str], bool]:
    """The sites named (a name, a comma list, a JSON list, or repeated), and whether that means all.

    Raises UnknownSite for one that is not among `readable`.
    """
    named: list[str] = []
    for value in values:
        parts = value if isinstance(value, list) else _list_or_none(value) or str(value).split(",")
        named += [str(part).strip() for part in parts if str(part).strip()]
    if not named or "all" in named:
        return list(readable), True
    for name in named:
        if name not in readable:
            there = ", ".join(readable) or "none yet"
            raise UnknownSite(f"there is no site `{name[:80]}`; sites: {there}", field="site")
    return list(dict.fromkeys(named)), False


def previous(values: Sequence[Any]) -> tuple[str, ...]:
    """Earlier questions, oldest first: a JSON list (never split), a repeated parameter (never split), or for
    old clients one text with commas."""
    if len(values) == 1:
        (value,) = values
        listed = value if isinstance(value, list) else _list_or_none(value)
        if listed is None:
            listed = str(value).strip().removeprefix("[").removesuffix("]").split(",")
    else:
        listed = list(values)
    return _texts(listed, "prev", MAX_PREV)[-MAX_PREV:]


def _texts(value: Any, name: str, most: int) -> tuple[str, ...]:
    if value is None:
        return ()
    listed = value if isinstance(value, list) else _list_or_none(value)
    if listed is None:
        listed = [value]
    texts = []
    for one in listed:
        if not isinstance(one, str):
            raise BadQuery(f"`{name}` must be a list of texts", field=name)
        if len(one) > MAX_QUERY_CHARS:
            raise BadQuery(f"a text in `{name}` may have {MAX_QUERY_CHARS} characters", field=name)
        if one.strip():
            texts.append(one.strip())
    if len(texts) > most:
        raise BadQuery(f"`{name}` may have {most} entries, not {len(texts)}", field=name)
    return tuple(texts)


def _list_or_none(value: Any) -> list[Any] | None:
    if not isinstance(value, str) or not value.lstrip().startswith("["):
        return None
    try:
        parsed = orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
    return parsed if isinstance(parsed, list) else None


def _last_answers(value: Any) -> tuple[Shown, ...]:
    listed = value if isinstance(value, list) else _list_or_none(value)
    if listed is None:
        if value is None:
            return ()
        raise BadQuery("`last_ans` must be a JSON list of {title, url}", field="last_ans")
    shown = []
    for one in listed[:100]:
        if not isinstance(one, Mapping):
            raise BadQuery("`last_ans` must be a JSON list of {title, url}", field="last_ans")
        shown.append(Shown(str(one.get("title", ""))[:500], str(one.get("url", ""))[:2000]))
    return tuple(shown)


def _mode(params: Params) -> Mode:
    mode = str(params.first("mode", "generate_mode") or "list").strip().lower()
    if mode in ("none", "list"):
        return "list"
    if mode in MODES:
        raise BadQuery(f"mode `{mode}` is not available yet: use list", field="mode")
    raise BadQuery(f"`mode` must be one of {', '.join(MODES)}, not `{mode[:40]}`", field="mode")


def _id(params: Params, name: str) -> str:
    value = params.first(name)
    if value is None:
        return secrets.token_urlsafe(12)
    if not ID.fullmatch(str(value)):
        raise BadQuery(f"`{name}` is 1-128 of A-Z a-z 0-9 . _ : ~ -", field=name)
    return str(value)


def _language(accept: str) -> str:
    """The first language of an Accept-Language value (RFC 9110, 12.5.4), as its primary subtag."""
    match = re.match(r"\s*([A-Za-z]{2,3})(?=[-,;\s]|$)", accept)
    return match[1].lower() if match else ""


def _wants_json(accept: str) -> bool:
    return "application/json" in accept and "text/event-stream" not in accept
