"""What a fact left in conversations is in no prompt once the fact is gone, however it went."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from server.keys import MEMORY, WHITEBOARDS
from tests.conftest import ADMIN, Serve, Served
from tests.core.memory.support import DAY_S, Clock
from tests.fakes.openai_server import ModelRequest, Say, ScriptedModel
from tests.fakes.sensible_model import SensibleModel, values_of
from tests.server.test_mcp_memory import call, speaking
from tests.server.test_memory_rest import ANNA, ask, keep, kitchen, texts

FACT = "I love vermilion kettles"
# The fact's own word, and what the model makes of it.
WORDS = ("vermilion", "scarletpots")


class Telling(SensibleModel):
    """Puts the fact in other words into all it writes."""

    def __call__(self, request: ModelRequest) -> Any:
        if request.schema_name == "WhiteboardMaintenancePrompt" and not self.replies:
            (messages,) = values_of(request.prompt, "whiteboard.messages")
            turn = json.loads(messages)[-1]["turn"]
            return {"entries": [{"id": "", "kind": "requirement", "text": "only scarletpots", "turn": turn}]}
        if "Synthesize" in request.schema_name or not request.schema:
            return Say("As scarletpots are yours, the stew [1].")
        return super().__call__(request)

    def _rewritten(self, question: str) -> dict[str, Any]:
        if "something with rice" in question:
            return {
                "requires_decontextualization": True,
                "decontextualized_query": "rice in scarletpots and vermilion",
            }
        return super()._rewritten(question)


def leaks(model: ScriptedModel) -> list[str]:
    return [
        request.schema_name or "answer"
        for request in model.requests
        if any(word in request.prompt + request.system for word in WORDS)
    ]


async def settled(server: Served) -> None:
    await server.app[WHITEBOARDS].settled()


async def told_and_used(server: Served, model: ScriptedModel) -> str:
    """A conversation that told the fact, and two more questions that were answered with it; the fact's id."""
    told = (await ask(server, f"Remember that {FACT}", conversation_id="c1")).one("remember")
    rewritten = await ask(server, "something with rice", conversation_id="c1")
    assert "scarletpots" in rewritten.one("decontextualized_query")["decontextualized_query"]
    written = await ask(server, "stew", conversation_id="c1", mode="generate")
    assert "scarletpots" in written.one("nlws")["answer"]
    await settled(server)
    _, board = await server.json("GET", "/conversations/c1/whiteboard", headers=ANNA)
    assert [entry["text"] for entry in board["entries"]] == ["only scarletpots"]
    assert set(board["entries"][0]) == {"id", "kind", "text", "turn"}
    return str(told["memory_id"])


async def nothing_is_left(server: Served, model: ScriptedModel) -> None:
    _, whole = await server.json("GET", "/conversations/c1/export?format=json", headers=ANNA)
    assert not [word for word in WORDS if word in json.dumps(whole)]
    model.answer = SensibleModel()
    model.requests.clear()
    for conversation_id in ("c1", "c2"):
        for mode in ("list", "generate"):
            await ask(server, "and stew", conversation_id=conversation_id, mode=mode)
    await settled(server)
    # The model is asked all of it: rewriting with what was said before, the board with what it has not seen.
    asked = {request.schema_name for request in model.requests}
    assert {"PrevQueryDecontextualizer", "RankingPrompt", "WhiteboardMaintenancePrompt"} <= asked
    assert leaks(model) == []


Way = Callable[[Served, str, Clock], Awaitable[None]]


async def by_undo(server: Served, memory_id: str, _: Clock) -> None:
    assert (await server.json("DELETE", f"/memory/{memory_id}?undo=true", headers=ANNA))[0] == 200


async def by_id(server: Served, memory_id: str, _: Clock) -> None:
    assert (await server.json("DELETE", f"/memory/{memory_id}", headers=ANNA))[0] == 200


async def by_chat(server: Served, _: str, __: Clock) -> None:
    told = (await ask(server, f"Forget that {FACT}", conversation_id="c1")).one("forgotten")
    assert "confirm" not in told


async def by_chat_confirmed(server: Served, _: str, __: Clock) -> None:
    told = (await ask(server, "Forget that I like kettles", conversation_id="c1")).one("forgotten")
    # Asked between the offer and the answer to it, with the words of the offer before it.
    await ask(server, "something with rice", conversation_id="c1")
    body = {"token": told["confirm"]}
    assert (await server.json("POST", "/memory/confirm", json=body, headers=ANNA))[0] == 200


async def by_agent(server: Served, memory_id: str, _: Clock) -> None:
    async with speaking(server, ANNA) as anna:
        assert await call(anna, "forget", memory_id=memory_id) == {"forgotten": [memory_id]}


async def by_mem0(server: Served, memory_id: str, _: Clock) -> None:
    assert (await server.json("DELETE", f"/v1/memories/{memory_id}/", headers=ANNA))[0] == 200


async def by_mem0_of_a_user(server: Served, _: str, __: Clock) -> None:
    assert (await server.json("DELETE", "/v1/memories/?user_id=anna", headers=ANNA))[0] == 200


async def by_operator(server: Served, memory_id: str, _: Clock) -> None:
    admin = {"Authorization": f"Bearer {ADMIN}"}
    path = f"/admin/memory?user=anna&id={memory_id}"
    assert (await server.json("DELETE", path, headers=admin))[0] == 200


async def by_correction(server: Served, memory_id: str, _: Clock) -> None:
    body = {"text": "I love tin"}
    assert (await server.json("PATCH", f"/memory/{memory_id}", json=body, headers=ANNA))[0] == 200


async def by_time(_: Served, __: str, clock: Clock) -> None:
    clock.now += 2 * DAY_S


async def by_replacing_then_forgetting(server: Served, memory_id: str, _: Clock) -> None:
    newer = await keep(server, "I no longer love vermilion kettles")
    assert newer["superseded"] == [memory_id]
    await ask(server, "something with rice", conversation_id="c1")
    for one in (newer["memory_id"], memory_id):
        assert (await server.json("DELETE", f"/memory/{one}", headers=ANNA))[0] == 200


WAYS = [
    *(by_undo, by_id, by_chat, by_chat_confirmed, by_agent, by_mem0, by_mem0_of_a_user, by_operator),
    *(by_correction, by_time, by_replacing_then_forgetting),
]


@pytest.mark.both_databases
@pytest.mark.parametrize("way", WAYS)
async def test_what_was_made_with_a_fact_is_in_no_later_prompt(
    serve: Serve, model: ScriptedModel, way: Way
) -> None:
    clock = Clock()
    more = {"memory": {"expiration": "1d"}, "conversation": {"message_expiration": "30d"}}
    server = await kitchen(serve, model=model, clock=clock, **more)
    model.answer = Telling()
    memory_id = await told_and_used(server, model)
    await way(server, memory_id, clock)
    await nothing_is_left(server, model)


async def test_questions_stay_as_they_were_asked(serve: Serve, model: ScriptedModel) -> None:
    server = await kitchen(serve, model=model)
    model.answer = Telling()
    memory_id = await told_and_used(server, model)
    await by_undo(server, memory_id, Clock())
    _, whole = await server.json("GET", "/conversations/c1", headers=ANNA)
    turns = [(turn["asked"], turn["searched"], turn["answer"]) for turn in whole["turns"]]
    assert turns == [("something with rice",) * 2 + ("",), ("stew", "stew", "")]
    assert whole["turns"][1]["shown"]
    assert "told" not in whole["turns"][0]
    assert whole["title"] == ""


async def test_other_facts_and_other_conversations_keep_what_was_made_of_them(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await kitchen(serve, model=model)
    model.answer = Telling(rewrites={"and more": "more stew as asked"})
    await ask(server, "stew", conversation_id="before")
    await ask(server, "and more", conversation_id="before")
    memory_id = await told_and_used(server, model)
    await by_undo(server, memory_id, Clock())
    _, before = await server.json("GET", "/conversations/before", headers=ANNA)
    assert [turn["searched"] for turn in before["turns"]] == ["stew", "more stew as asked"]
    assert before["title"] == "stew"


async def test_told_where_nobody_keeps_a_conversation_and_used_in_one(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await kitchen(serve, model=model)
    model.answer = Telling()
    memory_id = (await keep(server, FACT))["memory_id"]
    await ask(server, "dinner", conversation_id="c1")
    await ask(server, "something with rice", conversation_id="c1")
    await settled(server)
    await by_id(server, memory_id, Clock())
    await nothing_is_left(server, model)


async def test_a_fact_that_was_learned_by_the_way_leaves_nothing_either(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await kitchen(serve, model=model, memory={"mode": "automatic"})
    learned = {"text": "My kettle is vermilion", "kind": "fact"}
    model.answer = Telling(replies={"MemoryExtractionPrompt": {"facts": [learned]}})
    await ask(server, "My kettle is vermilion. A stew?", conversation_id="c1")
    await server.app[MEMORY].settled()
    # It is nothing that these questions call up: it comes from the turn before.
    await ask(server, "something with rice", conversation_id="c1")
    await settled(server)
    _, kept = await server.json("GET", "/memory", headers=ANNA)
    await by_id(server, kept["memories"][0]["memory_id"], Clock())
    await nothing_is_left(server, model)


async def test_a_fact_that_is_told_twice_is_gone_from_both_conversations(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await kitchen(serve, model=model)
    model.answer = Telling()
    await told_and_used(server, model)
    again = (await ask(server, f"Remember that {FACT}", conversation_id="c2")).one("remember")
    assert again["memory_id"] is None  # it takes nothing back that was told before
    _, kept = await server.json("GET", "/memory", headers=ANNA)
    await by_id(server, kept["memories"][0]["memory_id"], Clock())
    await nothing_is_left(server, model)
    _, second = await server.json("GET", "/conversations/c2", headers=ANNA)
    assert [turn["asked"] for turn in second["turns"]] == ["and stew", "and stew"]


async def test_an_answer_that_is_on_its_way_when_the_fact_goes_brings_nothing_back(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await kitchen(serve, model=model)
    model.answer = Telling()
    memory_id = (await ask(server, f"Remember that {FACT}", conversation_id="c1")).one("remember")[
        "memory_id"
    ]
    forgotten: list[int] = []

    async def forget() -> None:
        status, _ = await server.json("DELETE", f"/memory/{memory_id}", headers=ANNA)
        forgotten.append(status)

    async with server.session.post(
        f"{server.url}/ask",
        json={"query": "something with rice", "site": "kitchen", "conversation_id": "c1"},
        headers=ANNA,
    ) as response:
        async for line in response.content:
            if b"decontextualized_query" in line and not forgotten:
                await forget()
    assert forgotten == [200]
    _, whole = await server.json("GET", "/conversations/c1", headers=ANNA)
    assert [(turn["asked"], turn["searched"]) for turn in whole["turns"]] == [("something with rice",) * 2]
    await nothing_is_left(server, model)


async def test_what_agents_said_with_a_fact_goes_with_it(serve: Serve, model: ScriptedModel) -> None:
    server = await kitchen(serve, model=model)
    model.answer = Telling()
    memory_id = (await keep(server, FACT))["memory_id"]

    async def say(*said: str) -> dict[str, Any]:
        messages = [
            {"role": "assistant" if n % 2 else "user", "content": text, "id": text}
            for n, text in enumerate(said)
        ]
        body = {"conversation_id": "c1", "messages": messages}
        status, answer = await server.json("POST", "/context", json=body, headers=ANNA)
        assert status == 200
        return dict(answer)

    assert (await say("dinner"))["memories"]
    await say("dinner", "Take scarletpots.", "fine", "Then scarletpots it is.", "good")
    await settled(server)
    await by_id(server, memory_id, Clock())
    _, whole = await server.json("GET", "/conversations/c1", headers=ANNA)
    assert [one["content"] for one in whole["messages"]] == ["dinner", "fine", "good"]
    model.answer = SensibleModel()
    model.requests.clear()
    told = await say("dinner", "Take scarletpots.", "fine", "Then scarletpots it is.", "good", "Yes", "bye")
    await settled(server)
    assert not [word for word in WORDS if word in json.dumps(told)]
    assert model.requests
    assert leaks(model) == []


async def test_board_is_made_anew_from_what_is_left(serve: Serve, model: ScriptedModel) -> None:
    server = await kitchen(serve, model=model)

    def board(request: ModelRequest) -> dict[str, Any]:
        (said,) = values_of(request.prompt, "whiteboard.messages")
        asked = [one for one in json.loads(said) if one["role"] == "user"]
        return {
            "entries": [
                {
                    "id": "",
                    "kind": "requirement",
                    "text": one.get("searched", one["content"]),
                    "turn": one["turn"],
                }
                for one in asked
            ]
        }

    model.answer = Telling(replies={"WhiteboardMaintenancePrompt": board})
    memory_id = (await keep(server, FACT))["memory_id"]
    await ask(server, "dinner", conversation_id="c1")
    await ask(server, "something with rice", conversation_id="c1")
    await settled(server)
    await by_id(server, memory_id, Clock())
    _, dropped = await server.json("GET", "/conversations/c1/whiteboard", headers=ANNA)
    assert (dropped["entries"], dropped["pending"]) == ([], True)
    await ask(server, "stew", conversation_id="c1")
    await settled(server)
    _, anew = await server.json("GET", "/conversations/c1/whiteboard", headers=ANNA)
    assert [entry["text"] for entry in anew["entries"]] == ["dinner", "something with rice", "stew"]
    assert await texts(server) == []
