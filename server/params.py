"""Query string or body -> `core.query.Query`: every parameter checked, every error naming its field."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast, get_args

import orjson
from aiohttp import web

from core.errors import AskError, BadQuery, Forbidden, UnknownSite
from core.prompting.schema_types import spelled
from core.query import MAX_QUERY_CHARS, Identity, Mode, Query, Shown
from core.settings import Settings
from core.signals import Place, place
from core.tags import keyword, split
from core.tools import described
from server.wire.base import ResponseFormat

MAX_PREV = 200
MAX_MEMORY = 50
MAX_TAGS = 50
MAX_TAG_VALUES = 2000  # e.g. all groups that somebody is in
# Room for all that may be in it, in any script; what is longer would hold up the others while it is read.
MAX_QUESTION_BYTES = 8 * 2**20
ID = re.compile(r"[A-Za-z0-9._:~-]{1,128}")
TYPE = re.compile(r"(?:schema:|https?://schema\.org/)?([A-Za-z][A-Za-z0-9]{0,99})")
OFF = frozenset({"false", "0", "off", "no"})
ON = frozenset({"true", "1", "on", "yes"})
# What was meant to be JSON: an object, a list of texts, or one without its end. Not `[soup, stew]`.
_LIKE_JSON = re.compile(r'\{|\[\s*["\[{]|\[(?!.*\]$)', re.DOTALL)
MODES = get_args(Mode)
FORMATS = get_args(ResponseFormat)
# Parameters that hold several values, and so may be repeated with different ones.
LISTED = frozenset({"site", "prev", "last_ans", "memory", "tags"})


class Params:
    """Parameters by name, as lists of raw values: strings of a query string, JSON values of a body.

    `places` says where a parameter stood if not under its own name; errors name that.
    """

    def __init__(self, values: Mapping[str, Sequence[Any]], places: Mapping[str, str] | None = None) -> None:
        self._values = values
        self._places = places or {}

    def over(self, values: Mapping[str, Sequence[Any]], places: Mapping[str, str]) -> Params:
        """These parameters with others over them."""
        return Params({**self._values, **values}, {**self._places, **places})

    @contextmanager
    def told(self) -> Iterator[None]:
        """Errors raised inside name a parameter as the client calls it."""
        try:
            yield
        except AskError as failed:
            place = self._places.get(failed.field or "")
            if place is None:
                raise
            message = failed.message.replace(f"`{failed.field}`", f"`{place}`")
            raise type(failed)(message, field=place) from None

    def raw(self, name: str) -> Any:
        """The last value as it came, None if there is none."""
        values = self._values.get(name, ())
        return values[-1] if values else None

    def first(self, *names: str) -> Any:
        """The value of the first of these names that is there and not empty.

        Raises BadQuery where one that has a single value was given several.
        """
        name = self.called(*names)
        given = self._given(name)
        if len(given) > 1 and name not in LISTED and any(value != given[0] for value in given):
            raise BadQuery(f"`{name}` is given twice", field=name)
        return given[-1] if given else None

    def called(self, *names: str) -> str:
        """The name that `first` takes the value of: what is wrong with it is told by that. The first of the
        names where none has a value."""
        return next((name for name in names if self._given(name)), names[0])

    def _given(self, name: str) -> list[Any]:
        return [value for value in self._values.get(name, ()) if value is not None and value != ""]

    def names(self) -> Sequence[str]:
        """What was given, known or not."""
        return list(self._values)

    def all(self, name: str) -> Sequence[Any]:
        return self._values.get(name, ())

    def text(self, *names: str, limit: int) -> str:
        value = self.first(*names)
        if value is None:
            return ""
        name = self.called(*names)
        if not isinstance(value, str):
            raise BadQuery(f"`{name}` must be text", field=name)
        if len(value) > limit:
            raise BadQuery(f"`{name}` may have {limit} characters, not {len(value)}", field=name)
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
        if value is None:
            return default
        word = str(value).strip().lower()
        if word not in ON | OFF:
            raise BadQuery(f"`{name}` must be true or false", field=name)
        return word in ON

    def switched_off(self, name: str) -> bool:
        """Whether it is one of the words for off; anything else is on, as in NLWeb."""
        return str(self.first(name)).strip().lower() in OFF


@dataclass(frozen=True, slots=True)
class Asked:
    """A checked question, and how its answer is to travel."""

    query: Query
    streaming: bool
    response_format: ResponseFormat = "conv_search"
    respond_async: bool = False


async def read_params(request: web.Request) -> Params:
    """The query string, with a JSON or form body over it. Raises BadQuery for a body that is neither, or
    that says something twice."""
    values: dict[str, list[Any]] = {}
    for name, value in request.query.items():
        values.setdefault(name, []).append(value)
    if request.method == "POST":
        values.update(await _body(request))
    return Params(values)


async def _body(request: web.Request) -> dict[str, list[Any]]:
    if request.content_type in ("application/x-www-form-urlencoded", "multipart/form-data"):
        try:
            form = await request.post()
        except (ValueError, LookupError, AssertionError) as broken:
            # A boundary that is missing, a charset that is none, bytes that are not in it.
            raise BadQuery(f"the form cannot be read: {broken}"[:200], field="body") from None
        fields: dict[str, list[Any]] = {}
        for name, value in form.items():
            if not isinstance(value, str):
                raise BadQuery(f"`{name}` is a file: files go to /documents", field=name)
            fields.setdefault(name, []).append(value)
        return fields
    raw = await request.read()
    if len(raw) > MAX_QUESTION_BYTES:
        raise BadQuery(f"a question's body may have {MAX_QUESTION_BYTES:,} bytes", field="body")
    body = await json_body(request)
    _check_once(raw)
    return {name: [value] for name, value in body.items()}


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


def _check_once(raw: bytes) -> None:
    """Raises BadQuery for JSON with a key twice: which of the two would hold is anybody's guess."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise BadQuery(f"the body has the key `{twice[:80]}` twice", field=twice[:80])
        return found

    try:
        json.loads(raw or b"{}", object_pairs_hook=once)
    except RecursionError:
        raise BadQuery("the body is nested too deeply", field="body") from None


def asked_from(
    params: Params,
    *,
    settings: Settings,
    readable: Sequence[str],
    identity: Identity | None,
    remember: bool,
    accept: str,
    operator: bool = False,
) -> Asked:
    """The question. Raises BadQuery naming the field, UnknownSite naming the sites there are, Forbidden for
    what only an `operator` may have; inside `params.told`, by the names that the client used."""
    query = _query(params, settings, readable, identity, remember=remember)
    if query.debug and not operator:
        raise Forbidden("`debug` is for operators", field="debug")
    respond_async = params.flag("respond_async", default=False)
    return Asked(query, wants_stream(params, accept), _response_format(params), respond_async)


def wants_stream(params: Params, accept: str) -> bool:
    """Whether the answer is wanted as events and not as one JSON value. Raises BadQuery."""
    if params.first("streaming") is None:
        # A promise is one object, unless the client said that it reads a stream.
        return not (params.flag("respond_async", default=False) or wants_json(accept))
    return not params.switched_off("streaming")


def _query(
    params: Params,
    settings: Settings,
    readable: Sequence[str],
    identity: Identity | None,
    *,
    remember: bool,
) -> Query:
    text = question(params.text("query", limit=MAX_QUERY_CHARS))
    if params.first("filters") is not None:
        raise BadQuery("`filters` is not available yet", field="filters")
    sites, all_sites = sites_from(params.all("site"), readable)
    return Query(
        text=text,
        query_id=_id(params, "query_id"),
        query_id_given=params.first("query_id") is not None,
        conversation_id=_id(params, "conversation_id"),
        sites=tuple(sites),
        all_sites=all_sites,
        prev=previous(params.all("prev")),
        history_given=params.first("prev") is not None,
        last_answers=_last_answers(params.first("last_ans")),
        decontextualized_query=params.text("decontextualized_query", limit=MAX_QUERY_CHARS).strip() or None,
        context_url=params.text("context_url", limit=4000),
        context_text=params.text("context_description", limit=20_000),
        memory=_facts(params.all("memory")),
        mode=_mode(params),
        **_numbers(params, settings),
        item_type=item_type(params),
        tool=_tool(params),
        tags=tag_filter(params.all("tags")),
        near=_near(params),
        provisional=params.flag("provisional", default=False),
        remember=remember and params.flag("remember", default=True),
        debug=params.flag("debug", default=False),
        language=_language(params.text("accept_language", limit=100)),
        identity=identity,
    )


def question(text: str) -> str:
    """The question without white space around it. Raises BadQuery where there is nothing else."""
    if not (said := text.strip()):
        raise BadQuery(f"`query` is needed: the question, 1 to {MAX_QUERY_CHARS} characters", field="query")
    return said


def _numbers(params: Params, settings: Settings) -> dict[str, Any]:
    """How many candidates, how many of them in the answer, from where on, and how good at least."""
    candidates = params.number("num_results", 1, 1000)
    size = params.number("max_results", 1, 100)
    start = params.number("start_num", 0, 1000)
    for name, value in (("max_results", size), ("start_num", start and start + 1)):
        # Only where the client said both: with a default in it, the last page is just an empty one.
        if candidates is not None and value is not None and value > candidates:
            raise BadQuery(f"`{name}` reaches beyond the {candidates} of `num_results`", field=name)
    return {
        "num_results": candidates or settings.retrieval.num_results,
        "max_results": size or settings.ranking.max_results,
        "min_score": params.number("min_score", 0, 100),
        "start_num": start or 0,
    }


def sites_from(values: Sequence[Any], readable: Sequence[str]) -> tuple[list[str], bool]:
    """The sites named (a name, a comma list, a JSON list, or repeated), and whether that means all.

    Raises BadQuery for what is no name, UnknownSite for one that is not among `readable`.
    """
    named: list[str] = []
    for value in values:
        if value is None:
            continue
        parts = value if isinstance(value, list) else _list_or_none(value)
        if parts is None:
            parts = value.split(",") if isinstance(value, str) else [value]
        if not all(isinstance(part, str) for part in parts):
            raise BadQuery("`site` must be the name of a site, or a list of them", field="site")
        named += [part.strip() for part in parts if part.strip()]
    if not named or "all" in named:
        return list(readable), True
    for name in named:
        if name not in readable:
            there = ", ".join(readable) or "none yet"
            raise UnknownSite(f"there is no site `{name[:80]}`; sites: {there}", field="site")
    return list(dict.fromkeys(named)), False


def previous(values: Sequence[Any]) -> tuple[str, ...]:
    """Earlier questions, oldest first: a JSON list (never split), a repeated parameter (never split), or for
    old clients one text with commas, in brackets or not. Raises BadQuery, also for JSON that is no list."""
    if len(values) != 1:
        listed = list(values)
    elif isinstance(values[0], str):
        listed = _list_or_none(values[0]) or _split_by_commas(values[0])
    else:
        listed = values[0]
    if listed is not None and not isinstance(listed, list):
        raise BadQuery("`prev` must be a list of texts", field="prev")
    return _texts(listed, "prev", MAX_PREV)[-MAX_PREV:]


def _split_by_commas(text: str) -> list[str]:
    """The questions in a text that is no JSON list."""
    text = text.strip()
    if _LIKE_JSON.match(text):
        raise BadQuery("`prev` is neither a JSON list of texts nor texts with commas", field="prev")
    return text.removeprefix("[").removesuffix("]").split(",")


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


def _facts(values: Sequence[Any]) -> tuple[str, ...]:
    """Facts for this request: a list, a text, or repeated."""
    if len(values) > 1:
        return _texts(list(values), "memory", MAX_MEMORY)
    return _texts(values[0] if values else None, "memory", MAX_MEMORY)


def _mode(params: Params) -> Mode:
    """One of the modes; of several, as NLWeb's strict clients send them, the one that does most."""
    given = params.text("mode", "generate_mode", limit=100) or "list"
    words = [word.strip().lower() for word in given.split(",")]
    for word in words:
        if word not in (*MODES, "none"):
            name = params.called("mode", "generate_mode")
            raise BadQuery(f"`{name}` must be one of {', '.join(MODES)}, not `{word[:40]}`", field=name)
    return next((mode for mode in reversed(MODES) if mode in words), "list")


def item_type(params: Params) -> str | None:
    """The schema.org type that items must have, as its plain name."""
    given = params.text("item_type", "required_item_type", limit=150).strip()
    if not given:
        return None
    match = TYPE.fullmatch(given)
    if match is None:
        name = params.called("item_type", "required_item_type")
        raise BadQuery(f"`{name}` must be the name of a schema.org type", field=name)
    return spelled(match[1])


def _tool(params: Params) -> str | None:
    given = params.first("tool")
    if given is not None and not ID.fullmatch(str(given)):
        raise BadQuery("`tool` must be the name of a tool", field="tool")
    if given is not None and str(given) not in described():
        raise BadQuery(f"`tool` must be one of {', '.join(described())}", field="tool")
    return None if given is None else str(given)


def tag_filter(values: Sequence[Any]) -> tuple[dict[str, tuple[str, ...]], ...]:
    """Tags to filter by (contract 8): objects `{name: value or values}` of which one must hold whole; or, in
    a query string, `name:value` (cut at the first colon), which must all hold, any value of a name.

    Raises BadQuery for what would mean nothing: an empty object, a name without a value, a reserved name.
    """
    objects: list[Any] = []
    named: dict[str, list[str]] = {}
    for value in values:
        if isinstance(value, str) and value.strip() and value.lstrip()[0] not in "[{":
            name, wanted = split(value)
            named.setdefault(name, []).append(wanted)
            continue
        parsed = _json(value, "tags") if isinstance(value, str) else value
        if parsed is not None:
            objects += parsed if isinstance(parsed, list) else [parsed]
    if named:
        objects.append(named)
    if len(objects) > MAX_TAGS:
        raise BadQuery(f"`tags` may have {MAX_TAGS} entries", field="tags")
    alternatives = tuple(_tag_object(one) for one in objects)
    if sum(len(values) for one in alternatives for values in one.values()) > MAX_TAG_VALUES:
        raise BadQuery(f"`tags` may have {MAX_TAG_VALUES:,} values", field="tags")
    return alternatives


def _json(text: str, name: str) -> Any:
    if not text.strip():
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as broken:
        raise BadQuery(f"`{name}` is not valid JSON: {broken}", field=name) from None


def _tag_object(given: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(given, Mapping) or not given:
        raise BadQuery("`tags` must be a list of objects {name: value}, none of them empty", field="tags")
    wanted: dict[str, tuple[str, ...]] = {}
    for name, value in given.items():
        values = value if isinstance(value, list) else [value]
        if not values or not all(isinstance(one, str) for one in values):
            raise BadQuery(f"`tags`: `{name[:80]}` needs a value, or a list of them", field="tags")
        stored = [split(keyword(name, one)) for one in values]
        wanted[stored[0][0]] = tuple(dict.fromkeys(one for _, one in stored))
    return wanted


def _near(params: Params) -> Place | None:
    """Where the asker is, as `lat,lon`."""
    given = params.text("near", limit=80)
    found = place(given)
    if given.strip() and found is None:
        raise BadQuery("`near` must be `latitude,longitude` in degrees, such as `44.4,8.9`", field="near")
    return found


def _response_format(params: Params) -> ResponseFormat:
    given = params.text("response_format", limit=40) or FORMATS[0]
    for known in FORMATS:
        if given == known:
            return cast(ResponseFormat, known)
    raise BadQuery(f"`response_format` must be one of {', '.join(FORMATS)}", field="response_format")


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


def wants_json(accept: str) -> bool:
    """Whether an Accept header (RFC 9110, 12.5.1) prefers one JSON object to a stream of events.

    Wildcards say nothing: browsers and curl send them, and the stream is the default.
    """
    weights = dict(_weights(accept))
    return weights.get("application/json", 0.0) > weights.get("text/event-stream", 0.0)


def _weights(accept: str) -> Iterator[tuple[str, float]]:
    for part in accept.split(","):
        kind, *options = (piece.strip().lower() for piece in part.split(";"))
        weight = 1.0
        for option in options:
            name, _, value = option.partition("=")
            if name.strip() == "q":
                weight = float(value) if re.fullmatch(r"[01](\.\d{0,3})?", value.strip()) else 0.0
        yield kind, weight
