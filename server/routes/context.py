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
from server.keys import CONVERSATIONS, FACTS, LIBRARY, MEMORY, WHITEBOARDS
from server.middleware import json_response
from server.params import json_body

routes = web.RouteTableDef()

MAX_MESSAGES = 200
MAX_CONTENT_CHARS = 20_000
MAX_NAME_CHARS = 200
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

    stored = 0
    remembered: list[dict[str, Any]] = []
    if store:
        stored = await boards.see(identity, conversation_id, messages, sites=(site,) if site else ())
        if stored:
            remembered = await _remember(request, identity, conversation_id, site, messages)
    said = [message["content"] for message in messages if message["role"] == "user"]
    asking = Asking(
        identity=identity,
        text="\n".join(said[-ASKED_MESSAGES:]),
        scopes=SCOPES,
        applications=(site,) if site else (),
        thread=conversation_id,
        agent=scopes.get("agent", ""),
    )
    facts = await request.app[FACTS].recall(asking)
    board = await boards.current(identity, conversation_id)
    if store:
        known = [fact.memory_id for fact in facts]
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


async def _remember(
    request: web.Request,
    identity: Identity,
    conversation_id: str,
    site: str,
    messages: Sequence[Mapping[str, str]],
) -> list[dict[str, Any]]:
    """What the newest message of the user asks to remember; where memory is automatic what it tells, too."""
    memory = request.app.get(MEMORY)
    if memory is None or messages[-1]["role"] != "user":
        return []
    query = Query(
        text=messages[-1]["content"][:8000],
        query_id=secrets.token_urlsafe(12),
        conversation_id=conversation_id,
        sites=(site,) if site else (),
        identity=identity,
    )
    asked = [one for one in asked_of_memory(query.text).requests if one.action == "remember"]
    if not asked:
        memory.learn(query)
    return [await _kept(memory, query, one) for one in await memory.weighed(query, asked)]


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
        if not isinstance(one, str) or not one.strip() or one.strip() == "*" or len(one) > 256:
            raise BadQuery(f"`scopes.{name}` is an id: 1-256 characters and not `*`", field=f"scopes.{name}")
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
    message = {"role": str(role), "content": content}
    for name in ("id", "name"):
        one = value.get(name)
        if one is None:
            continue
        if isinstance(one, bool) or not isinstance(one, str | int) or len(str(one)) > MAX_NAME_CHARS:
            raise BadQuery(
                f"`{place}.{name}` is a text of at most {MAX_NAME_CHARS} characters", field=f"{place}.{name}"
            )
        message[name] = str(one)
    return message


def _tokens(value: Any) -> int:
    if value is None:
        return DEFAULT_TOKENS
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_TOKENS:
        raise BadQuery(f"`max_tokens` is a whole number from 1 to {MAX_TOKENS}", field="max_tokens")
    return value
