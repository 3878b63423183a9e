"""`/context`: what an agent puts before its own model: what is known of the person, and the whiteboard."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web

from core.conversation import ID
from core.errors import AskError, BadQuery
from core.memory import SCOPES, Asking, Fact, Memory, Request
from core.phrases import asked_of_memory
from core.prompting.fill import fill
from core.query import Identity, Query
from server.applications import check_application
from server.auth import Caller, owner, require, speaking_for
from server.keys import CLOCK, CONVERSATIONS, LIBRARY, MEMORY, WHITEBOARDS
from server.middleware import json_response
from server.params import json_body

routes = web.RouteTableDef()

MAX_MESSAGES = 200
MAX_CONTENT_CHARS = 20_000
MAX_NAME_CHARS = 200
MAX_ASKING_CHARS = 8000  # of a message, in which a wish to remember is looked for
MAX_ID_CHARS = 256
MAX_TOKENS = 100_000
DEFAULT_TOKENS = 1000
ASKED_MESSAGES = 3  # of the newest from the user: what the memory is searched with
ROLES = ("user", "assistant", "system", "tool")


@routes.post("/context")
async def context(request: web.Request) -> web.Response:
    """`{conversation_id?, messages, scopes?: {application, agent, thread, user}, store?, max_tokens?}` ->
    `{conversation_id, memories, whiteboard, text, stored, remember}`."""
    return json_response(await context_of(request, await json_body(request)))


async def context_of(request: web.Request, body: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to such a body for this request's caller. Raises BadQuery, Unauthorized, Forbidden."""
    asked_at = request.app[CLOCK]()
    scopes = _scopes(body.get("scopes"))
    store = body.get("store", True)
    if not isinstance(store, bool):
        raise BadQuery("`store` is true or false", field="store")
    identity = _speaker(request, scopes, changes=store)
    conversation_id = _conversation(body.get("conversation_id"), scopes) or secrets.token_urlsafe(12)
    messages = _messages(body.get("messages"))
    most = _tokens(body.get("max_tokens"))
    site = scopes.get("application", "")
    await check_application(request, site, field="scopes.application")
    boards = request.app[WHITEBOARDS]
    said = [message["content"] for message in messages if message["role"] == "user"]
    query = Query(
        text="\n".join(said[-ASKED_MESSAGES:]),
        query_id=secrets.token_urlsafe(12),
        conversation_id=conversation_id,
        sites=(site,) if site else (),
        identity=identity,
        agent=scopes.get("agent", ""),
        asked_at=asked_at,
    )

    stored = 0
    remembered: list[dict[str, Any]] = []
    if store:
        stored, asking = await _stored(request, query, messages)
        remembered = await _remember(request, query, asking)
    facts = await _recalled(request, query)
    board = await boards.current(identity, conversation_id)
    if store:
        known = [fact.memory_id for fact in facts if fact.memory_id]
        await request.app[CONVERSATIONS].note_used(identity, conversation_id, known)
    board_text = await boards.as_text(identity, conversation_id, site=site)
    facts, text = _fitting(request, facts, board_text, site, most)
    return {
        "conversation_id": conversation_id,
        "memories": [fact.told() for fact in facts],
        "whiteboard": [
            {"id": entry.id, "kind": entry.kind, "text": entry.text, "turn": entry.turn} for entry in board
        ],
        "text": text,
        "stored": stored,
        "remember": remembered,
    }


def _speaker(request: web.Request, scopes: Mapping[str, str], *, changes: bool) -> Identity:
    """Whom the agent speaks for: the caller, or the user it names and may name."""
    if "user" not in scopes:
        return owner(request, changes=changes)
    caller = require(request, "read")
    try:
        named: Caller = speaking_for(caller, scopes["user"])
    except BadQuery as wrong:
        raise BadQuery(wrong.message, field="scopes.user") from None
    assert named.identity is not None
    return named.identity


async def _stored(
    request: web.Request, query: Query, messages: Sequence[Mapping[str, str]]
) -> tuple[int, list[tuple[str, bool]]]:
    """Store the messages in the conversation; how many were new, and those of the user that may ask to
    remember something, each with whether it belongs to the newest exchange.

    Which message is new its id says. Of those without one, only the newest exchange counts as new: programs
    send the whole conversation again and again, and what was forgotten meanwhile must not come back with it.
    """

    async def see(some: Sequence[Mapping[str, str]]) -> int:
        assert query.identity is not None
        boards = request.app[WHITEBOARDS]
        return await boards.see(query.identity, query.conversation_id, some, sites=query.sites) if some else 0

    newest = _newest(messages)
    asking: list[tuple[str, bool]] = []
    stored = done = 0
    for n, message in enumerate(messages):
        if n in newest or ("id" in message and _asked(message)):
            stored += await see(messages[done:n])
            # By itself, so that it shows whether it was seen before.
            if await see([message]):
                stored += 1
                asking.append((message["content"], n in newest))
            done = n + 1
    return stored + await see(messages[done:]), asking


def _newest(messages: Sequence[Mapping[str, str]]) -> range:
    """The places of what the user said last, be there an answer behind it or not."""
    end = len(messages)
    while end and messages[end - 1]["role"] != "user":
        end -= 1
    start = end
    while start and messages[start - 1]["role"] == "user":
        start -= 1
    return range(start, end)


def _asked(message: Mapping[str, str]) -> bool:
    """Whether a message of the user asks for something to be remembered."""
    return message["role"] == "user" and bool(_requests(message["content"]))


def _requests(text: str) -> list[Request]:
    return [one for one in asked_of_memory(text[:MAX_ASKING_CHARS]).requests if one.action == "remember"]


async def _remember(
    request: web.Request, query: Query, asking: Sequence[tuple[str, bool]]
) -> list[dict[str, Any]]:
    """What these messages of the user ask to remember, in their order; where memory is automatic what the
    newest tell, too."""
    memory = request.app.get(MEMORY)
    if memory is None:
        return []
    told = []
    for text, is_newest in asking:
        one = query.with_(text=text[:MAX_ASKING_CHARS], query_id=secrets.token_urlsafe(12))
        requests = _requests(text)
        if not requests and is_newest:
            memory.learn(one)
        told += [await _kept(memory, one, asked) for asked in await memory.weighed(one, requests)]
    return told


async def _recalled(request: web.Request, query: Query) -> list[Fact]:
    """What is known of the person, of every scope that the request names; nothing where memory is off."""
    memory = request.app.get(MEMORY)
    if memory is None or query.identity is None:
        return []
    asking = Asking(
        identity=query.identity,
        text=query.text,
        scopes=SCOPES,
        applications=query.sites,
        thread=query.conversation_id,
        agent=query.agent,
    )
    return await memory.recall_for_agent(query, asking)


async def _kept(memory: Memory, query: Query, asked: Request) -> dict[str, Any]:
    try:
        told = await memory.remember(query, asked)
    except AskError as failed:
        return {"item_to_remember": asked.text, "memory_id": None, "message": failed.message}
    return {
        "item_to_remember": told.item_to_remember,
        "memory_id": told.memory_id,
        "scope": told.scope,
        "message": told.message,
        **({"confirm": told.confirm} if told.confirm else {}),
    }


def _fitting(
    request: web.Request, facts: Sequence[Fact], board: str, site: str, tokens: int
) -> tuple[list[Fact], str]:
    """The text within the limit and the facts in it: constraints stay long, the whiteboard goes last."""
    kept = list(facts)
    by_worth = sorted(
        kept, key=lambda fact: (("fact", "preference", "constraint").index(fact.kind), fact.created_at)
    )
    while True:
        text = "\n\n".join(part for part in (_memory_text(request, kept, site), board) if part)
        if estimated_tokens(text) <= tokens:
            return kept, text
        if by_worth:
            kept.remove(by_worth.pop(0))
        elif board:
            board = ""
        else:
            return [], ""


def _memory_text(request: web.Request, facts: Sequence[Fact], site: str) -> str:
    """By the site's `MemoryContextPrompt`; nothing where nothing is known, or the prompt is switched off."""
    library = request.app[LIBRARY].current
    types = library.site(site).types
    prompt = library.find("MemoryContextPrompt", site, types[0] if types else "Thing") if facts else None
    if prompt is None:
        return ""
    return fill(prompt, {"request.memory": [fact.text for fact in facts], "request.site": site}).text


def estimated_tokens(text: str) -> int:
    """About how many tokens a text has, rather too many: four Latin letters are one, a letter of another
    script is one by itself."""
    plain = sum(char.isascii() for char in text)
    return -(-plain // 4) + len(text) - plain


def _scopes(value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise BadQuery("`scopes` is an object of ids", field="scopes")
    found = {}
    for name, one in value.items():
        if name not in SCOPES:
            raise BadQuery(f"a scope is one of {', '.join(SCOPES)}", field=f"scopes.{name}"[:80])
        if one is None:
            continue
        if (
            not isinstance(one, str)
            or one.strip() in ("", "*")
            or len(one) > MAX_ID_CHARS
            or not one.isprintable()
        ):
            raise BadQuery(
                f"`scopes.{name}` is an id: 1-{MAX_ID_CHARS} printable characters and not `*`",
                field=f"scopes.{name}",
            )
        found[name] = one.strip()
    return found


def _conversation(value: Any, scopes: Mapping[str, str]) -> str:
    """The conversation's id, "" where none is given. One that is named twice is the same."""
    if value is not None and not isinstance(value, str):
        raise BadQuery("`conversation_id` is a text", field="conversation_id")
    given = [(value or "", "conversation_id"), (scopes.get("thread", ""), "scopes.thread")]
    for one, field in given:
        if one and not ID.fullmatch(one):
            raise BadQuery(f"`{field}` is 1-128 of A-Z a-z 0-9 . _ : ~ -", field=field)
    if value and scopes.get("thread", value) != value:
        raise BadQuery(
            "`conversation_id` and `scopes.thread` are two names of one thing", field="scopes.thread"
        )
    return value or scopes.get("thread", "")


def _messages(value: Any) -> list[dict[str, str]]:
    if not isinstance(value, list) or not 0 < len(value) <= MAX_MESSAGES:
        raise BadQuery(f"`messages` is a list of 1 to {MAX_MESSAGES} messages", field="messages")
    return [_message(one, f"messages[{n}]") for n, one in enumerate(value)]


def _message(value: Any, place: str) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise BadQuery(f"`{place}` is an object {{id?, role, content, name?}}", field=place)
    role, content = value.get("role"), value.get("content")
    if role not in ROLES:
        raise BadQuery(f"`{place}.role` is one of {', '.join(ROLES)}", field=f"{place}.role")
    if not isinstance(content, str) or len(content) > MAX_CONTENT_CHARS:
        raise BadQuery(
            f"`{place}.content` is a text of at most {MAX_CONTENT_CHARS} characters", field=f"{place}.content"
        )
    message = {"role": str(role), "content": _held(content)}
    for name in ("id", "name"):
        one = value.get(name)
        if one is None:
            continue
        if isinstance(one, bool) or not isinstance(one, str | int) or len(str(one)) > MAX_NAME_CHARS:
            raise BadQuery(
                f"`{place}.{name}` is a text of at most {MAX_NAME_CHARS} characters", field=f"{place}.{name}"
            )
        message[name] = _held(str(one))
    return message


def _held(text: str) -> str:
    """A text as every database can hold it: without NUL."""
    return text.replace("\x00", " ")


def _tokens(value: Any) -> int:
    if value is None:
        return DEFAULT_TOKENS
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_TOKENS:
        raise BadQuery(f"`max_tokens` is a whole number from 1 to {MAX_TOKENS}", field="max_tokens")
    return value
