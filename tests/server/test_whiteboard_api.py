"""The whiteboard over HTTP: it carries a conversation on, costs little, and harms no answer."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from server.keys import MEMORY, WHITEBOARDS
from tests.conftest import Serve, Served, recipe
from tests.fakes.openai_server import Hang, ModelRequest, ScriptedModel
from tests.fakes.sensible_model import SensibleModel, values_of
from tests.server.test_conversations import Remembering, begun, prompts
from tests.server.test_memory_rest import ANNA, AUTH

MACHINES = [
    recipe("north", "Machine north-4", "A machine with 4 cores and 16 GB of memory in the region north."),
    recipe("south", "Machine south-4", "A machine with 4 cores and 16 GB of memory in the region south."),
    recipe("big", "Machine south-64", "A machine with 64 cores and 512 GB of memory in the region south."),
    recipe("tart", "Lemon tart", "A sharp lemon cream in a short crust."),
]
AGREED = "4 cores, 16 GB, region north"
ANOTHER = "another one, same options except the region: south"


class Following(Remembering):
    """Rewrites "another one" by nothing but what stands on the whiteboard."""

    def __call__(self, request: ModelRequest) -> Any:
        if "econtextualiz" in request.schema_name and "another one" in request.prompt:
            (board,) = values_of(request.prompt, "request.whiteboard") or ["[]"]
            found = [one for one in json.loads(board) if "cores" in one] if board != "(none)" else []
            if not found:
                return {"requires_decontextualization": False, "decontextualized_query": ANOTHER}
            options = found[0].split(": ", 1)[1].replace("north", "south")
            return {"requires_decontextualization": True, "decontextualized_query": f"machine with {options}"}
        return super().__call__(request)


async def machines(serve: Serve, model: ScriptedModel, **more: Any) -> Served:
    server = await serve(model=model, auth=AUTH, **more)
    await server.load("machines", MACHINES)
    return server


async def board_of(
    server: Served, conversation: str, headers: dict[str, str] | None = None
) -> dict[str, Any]:
    status, board = await server.json(
        "GET", f"/conversations/{conversation}/whiteboard", headers=headers or {}
    )
    assert status == 200
    assert isinstance(board, dict)
    return board


async def settled(server: Served) -> None:
    await server.app[WHITEBOARDS].settled()


@pytest.mark.both_databases
@pytest.mark.parametrize("how", ["asked", "told by an agent"])
async def test_another_one_with_the_same_options_is_found_when_the_history_no_longer_has_them(
    serve: Serve, model: ScriptedModel, how: str
) -> None:
    server = await machines(serve, model, conversation={"message_limit": 3})
    model.answer = Following()
    conversation = "c1"
    if how == "asked":
        await server.ask(f"agreed: {AGREED}", conversation_id=conversation, headers=ANNA)
    else:
        body = {
            "conversation_id": conversation,
            "messages": [{"role": "user", "content": f"agreed: {AGREED}"}],
        }
        assert (await server.json("POST", "/context", json=body, headers=ANNA))[0] == 200
    for filler in ("lemon", "tart", "crust"):
        await server.ask(filler, conversation_id=conversation, headers=ANNA)
    await settled(server)
    _, whole = await server.json("GET", f"/conversations/{conversation}", headers=ANNA)
    assert [turn["asked"] for turn in whole["turns"]] == ["lemon", "tart", "crust"]
    frames = await server.ask(ANOTHER, conversation_id=conversation, headers=ANNA)
    assert frames.one("decontextualized_query")["decontextualized_query"] == (
        "machine with 4 cores, 16 GB, region south"
    )
    assert frames.final[0]["name"] == "Machine south-4"
    # Only the board carries it: in another conversation the same words mean nothing.
    stranger = await server.ask(ANOTHER, conversation_id="c2", headers=ANNA)
    assert stranger.of("decontextualized_query") == []


async def test_agent_is_given_the_board_of_what_has_left_the_history(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await machines(serve, model, conversation={"message_limit": 1})
    model.answer = Following()
    said = [{"id": f"m{n}", "role": "user", "content": f"chatter {n}"} for n in range(20)]
    said.insert(0, {"id": "first", "role": "user", "content": f"agreed: {AGREED}"})
    body: dict[str, Any] = {"conversation_id": "c1", "messages": said}
    assert (await server.json("POST", "/context", json=body, headers=ANNA))[0] == 200
    await settled(server)
    body = {"conversation_id": "c1", "messages": [{"role": "user", "content": "go on"}], "store": False}
    status, told = await server.json("POST", "/context", json=body, headers=ANNA)
    assert status == 200
    assert [(one["kind"], one["text"]) for one in told["whiteboard"]] == [("decision", AGREED)]
    assert AGREED in told["text"]


@pytest.mark.both_databases
async def test_fifty_messages_of_agents_at_once_cost_few_calls_and_none_is_lost(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await machines(serve, model, conversation={"message_limit": 3}, whiteboard={"max_messages": 20})
    model.answer = Remembering()

    async def say(n: int) -> int:
        message = {"id": f"m{n}", "role": "user", "content": f"agreed: option {n}"}
        body = {"conversation_id": "c1", "messages": [message]}
        status, told = await server.json("POST", "/context", json=body, headers=ANNA)
        return int(told["stored"]) if status == 200 else -1

    assert await asyncio.gather(*(say(n) for n in range(50))) == [1] * 50
    await settled(server)
    maintained = prompts(model, "WhiteboardMaintenancePrompt")
    assert len(maintained) <= 10
    told = "".join("".join(values_of(prompt, "whiteboard.messages")) for prompt in maintained)
    assert [f'"agreed: option {n}"' in told for n in range(50)] == [True] * 50
    board = await board_of(server, "c1", ANNA)
    assert len(board["entries"]) == board["max"] == 20
    assert board["pending"] is False
    assert len({one["text"] for one in board["entries"]}) == 20


async def test_cap_holds_whatever_the_model_writes(serve: Serve, model: ScriptedModel) -> None:
    server = await machines(serve, model, whiteboard={"max_messages": 5})
    many = [{"id": "", "kind": "decision", "text": f"entry {n}", "turn": 1} for n in range(60)]
    model.answer = SensibleModel(replies={"WhiteboardMaintenancePrompt": {"entries": many}})
    conversation = await begun(server)
    await server.ask("lemon", conversation_id=conversation)
    await settled(server)
    assert len((await board_of(server, conversation))["entries"]) == 5


@pytest.mark.parametrize("trouble", [500, Hang(), "this is no JSON"])
async def test_model_that_fails_at_the_board_harms_no_answer_and_the_next_turn_makes_it_good(
    serve: Serve, model: ScriptedModel, trouble: Any
) -> None:
    server = await machines(serve, model, llm={"timeout_s": 1, "max_retries": 0})
    sensible = Remembering()
    model.answer = sensible
    conversation = await begun(server)
    await server.ask("agreed: vegan", conversation_id=conversation)
    await settled(server)
    unharmed = await server.ask("lemon", conversation_id="other")
    model.answer = lambda r: trouble if r.schema_name == "WhiteboardMaintenancePrompt" else sensible(r)
    frames = await server.ask("lemon", conversation_id=conversation)
    assert [one["name"] for one in frames.final] == [one["name"] for one in unharmed.final]
    assert frames.of("error") == []
    await server.ask("agreed: no nuts", conversation_id=conversation)
    await settled(server)
    board = await board_of(server, conversation)
    assert [one["text"] for one in board["entries"]] == ["vegan"]
    assert board["pending"] is True
    model.answer = sensible
    await server.ask("tart", conversation_id=conversation)
    await settled(server)
    board = await board_of(server, conversation)
    assert [one["text"] for one in board["entries"]] == ["vegan", "no nuts"]
    assert board["pending"] is False


async def test_what_failed_is_taken_up_at_the_next_start(serve: Serve, model: ScriptedModel) -> None:
    server = await machines(serve, model, llm={"max_retries": 0})
    sensible = Remembering()
    model.answer = lambda r: 500 if r.schema_name == "WhiteboardMaintenancePrompt" else sensible(r)
    await server.ask("agreed: vegan", conversation_id="c1", headers=ANNA)
    await settled(server)
    assert (await board_of(server, "c1", ANNA))["entries"] == []
    await server.runner.cleanup()
    model.answer = sensible
    again = await serve(model=model, auth=AUTH)
    await settled(again)
    assert [one["text"] for one in (await board_of(again, "c1", ANNA))["entries"]] == ["vegan"]


# ---------------------------------------------------------------- steps of a site's own


SEASONAL = """<root><Site ref="machines" types="Recipe"><Thing>
  <Step ref="Season" sets="request.season" timeout="30">
    <promptString>Season of {request.query}?</promptString>
    <returnStruc>{"season": "a season"}</returnStruc></Step>
  <Prompt ref="WhiteboardMaintenancePrompt">
    <promptString>In {request.season}: {whiteboard.messages} {whiteboard.current} {whiteboard.max}
    </promptString>
    <returnStruc>{"entries": [{"id": "", "kind": "", "text": "", "turn": "integer"}]}</returnStruc></Prompt>
  <Prompt ref="MemoryConflictPrompt">
    <promptString>In {request.season}: {request.memory} {request.query}</promptString>
    <returnStruc>{"relation": "repeats, replaces or adds", "memory_id": "id"}</returnStruc></Prompt>
  <Prompt ref="MemoryExtractionPrompt">
    <promptString>In {request.season}: {whiteboard.messages} {request.memory}</promptString>
    <returnStruc>{"facts": [{"text": "", "kind": "", "sensitive": "True or False"}]}</returnStruc></Prompt>
</Thing></Site></root>"""


async def test_prompts_behind_the_answer_have_the_sites_own_variables(
    serve: Serve, model: ScriptedModel, tmp_path: Path
) -> None:
    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / "machines.xml").write_text(SEASONAL)
    server = await machines(serve, model, prompts_dir=folder, memory={"mode": "automatic"})
    model.answer = SensibleModel(
        replies={
            "step_Season": lambda request: {"season": f"winter for {request.prompt}"},
            "MemoryExtractionPrompt": {"facts": [{"text": "Cooks lemon tart", "kind": "fact"}]},
            "MemoryConflictPrompt": {"relation": "adds", "memory_id": ""},
            "WhiteboardMaintenancePrompt": {"entries": []},
        }
    )
    headers = dict(ANNA)
    await server.json(
        "POST", "/memory", json={"text": "Bakes lemon tart", "site": "machines"}, headers=headers
    )
    await server.ask("I cook lemon tart", site="machines", conversation_id="c1", headers=headers)
    await settled(server)
    await server.app[MEMORY].settled()
    for ref in ("WhiteboardMaintenancePrompt", "MemoryExtractionPrompt", "MemoryConflictPrompt"):
        found = prompts(model, ref)
        assert found, ref
        for prompt in found:
            (season,) = values_of(prompt, "request.season")
            assert season.startswith("winter for Season of"), ref
            assert "ook" in season, ref
