"""Asks the person before the client what a question lacks: by elicitation, in both eras of the protocol.

Older clients are asked over the stream of the call that waits, which takes a session. For newer ones the call
ends with what is to be asked, and the client makes it again with the answer; what was said in the rounds
before travels as its `requestState`. That is no secret and nothing rests on it: the client could as well have
said it in `prev`.
"""

from __future__ import annotations

from typing import Any, Final

import anyio
import mcp_types as types
import orjson
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from core.messages import AskUser
from core.query import MAX_QUERY_CHARS

KEY: Final = "answer"
MAX_ROUNDS: Final = 3
# A person reads, thinks and types; after that the call ends with the question in its result.
WAIT_S: Final = 300.0

Context = ServerRequestContext[Any, Any]


class InputWanted(Exception):
    """The call ends here: the client asks the person and makes it again."""

    def __init__(self, asked: AskUser, answers: tuple[str, ...]) -> None:
        super().__init__(asked.message)
        self.result = types.InputRequiredResult(
            input_requests={KEY: types.ElicitRequest(params=_form(asked))},
            request_state=orjson.dumps(answers).decode() if answers else None,
        )


class Asked:
    """A `Person` of `server.mcp.base`, by what the client can do."""

    def __init__(self, ctx: Context, params: types.CallToolRequestParams) -> None:
        """Raises MCPError for a state or an answer that this server cannot have asked for."""
        self._ctx = ctx
        said = (params.input_responses or {}).get(KEY)
        self._declined = said is not None
        self.answers: tuple[str, ...] = _state(params.request_state)
        if said is not None:
            answer = _answer(said)
            self._declined = not answer
            self.answers += (answer,) if answer else ()

    async def ask(self, asked: AskUser) -> str | None:
        """The answer. Raises InputWanted where it comes with another call."""
        if self._declined or len(self.answers) >= MAX_ROUNDS or not self._can_be_asked():
            return None
        if self._ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            raise InputWanted(asked, self.answers)
        form = _form(asked)
        answer = None
        # A client that cannot after all, or went wrong, is told the question in the result.
        with anyio.move_on_after(WAIT_S):
            try:
                said = await self._ctx.session.elicit_form(
                    form.message, form.requested_schema, related_request_id=self._ctx.request_id
                )
                answer = _answer(said)
            except (MCPError, ValueError):
                pass
        self._declined = not answer
        self.answers += (answer,) if answer else ()
        return answer or None

    def _can_be_asked(self) -> bool:
        able = self._ctx.session.client_capabilities
        if able is None or able.elicitation is None:
            return False
        modern = self._ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        # Neither mode named is the form (2025-06-18 knows no other).
        form = able.elicitation.form is not None or able.elicitation.url is None
        return form and (modern or self._ctx.session.can_send_request)


def _form(asked: AskUser) -> types.ElicitRequestFormParams:
    fields: dict[str, Any] = {}
    for question in asked.questions:
        fields[question.id] = {"type": "string", "title": question.text}
        if question.options:
            fields[question.id]["enum"] = list(question.options)
        else:
            fields[question.id] |= {"minLength": 1, "maxLength": MAX_QUERY_CHARS}
    fields = fields or {KEY: {"type": "string", "title": asked.message}}
    schema = {"type": "object", "properties": fields, "required": list(fields)}
    return types.ElicitRequestFormParams(message=asked.message, requested_schema=schema)


def _answer(said: Any) -> str:
    """What was filled in, as one text; empty where nothing was."""
    if not isinstance(said, types.ElicitResult):
        raise MCPError(types.INVALID_PARAMS, f"`inputResponses.{KEY}` must be the result of an elicitation")
    if said.action != "accept":
        return ""
    texts = [str(value).strip() for value in (said.content or {}).values() if value is not None]
    return ", ".join(text for text in texts if text)


def _state(given: str | None) -> tuple[str, ...]:
    if given is None:
        return ()
    try:
        answers = orjson.loads(given)
    except orjson.JSONDecodeError:
        answers = None
    if (
        not isinstance(answers, list)
        or len(answers) > MAX_ROUNDS
        or not all(isinstance(one, str) and 0 < len(one) <= MAX_QUERY_CHARS for one in answers)
    ):
        raise MCPError(types.INVALID_PARAMS, "`requestState` is none that this server gave")
    return tuple(answers)
