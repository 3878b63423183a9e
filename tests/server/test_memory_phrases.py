"""What people say to the memory, in five languages, through the server: kept, asked about, or let be."""

from __future__ import annotations

from typing import Any

from server.keys import MEMORY
from tests.conftest import Serve
from tests.core.phrase_tables import NOT_MEANT, NOT_TO_REMEMBER, SENSITIVE, TO_REMEMBER
from tests.fakes.openai_server import ModelRequest, ScriptedModel
from tests.fakes.sensible_model import SensibleModel
from tests.server.test_memory_rest import ANNA, ask, kitchen, texts


async def test_what_is_not_to_be_remembered_is_not_kept_whatever_a_model_says(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await kitchen(serve, model=model)
    sensible = SensibleModel()
    said = ""
    detected = 0

    def gullible(request: ModelRequest) -> Any:
        nonlocal detected
        if request.schema_name == "DetectMemoryRequestPrompt":
            detected += 1
            return {"is_memory_request": True, "memory_request": said, "action": "remember"}
        return sensible(request)

    model.answer = gullible
    for said in (*NOT_TO_REMEMBER, *NOT_MEANT):
        frames = await ask(server, said)
        assert frames.of("remember") == [], said
    assert await texts(server) == []
    assert detected >= 60


async def test_an_agent_keeps_what_is_asked_for_and_nothing_that_is_denied(serve: Serve) -> None:
    server = await kitchen(serve)

    async def remembered(said: str) -> list[dict[str, Any]]:
        body = {"messages": [{"role": "user", "content": said}]}
        status, told = await server.json("POST", "/context", json=body, headers=ANNA)
        assert status == 200
        remember = told["remember"]
        assert isinstance(remember, list)
        return remember

    for said in (*NOT_TO_REMEMBER, *NOT_MEANT):
        assert await remembered(said) == [], said
    assert await texts(server) == []
    for said, fact in TO_REMEMBER:
        assert [one["item_to_remember"] for one in await remembered(said)] == [fact], said
    kept = await texts(server)
    for fact in SENSITIVE:
        for one in await remembered(f"Remember: {fact}"):
            assert one["memory_id"] is None, fact
            assert one["confirm"]
    assert await texts(server) == kept


async def test_a_sensitive_fact_is_not_kept_without_consent_without_a_model(serve: Serve) -> None:
    server = await kitchen(serve)
    for said in ("Recuerda que soy alérgica al marisco", "Ricorda che ho l'asma", "请记住我打胰岛素"):
        told = (await ask(server, said)).one("remember")
        assert (told["memory_id"], bool(told["confirm"])) == (None, True), said
    assert await texts(server) == []


async def test_what_was_asked_supposed_or_quoted_is_not_learned(serve: Serve, model: ScriptedModel) -> None:
    server = await kitchen(serve, model=model, memory={"mode": "automatic"})
    sensible = SensibleModel()

    def credulous(request: ModelRequest) -> Any:
        if request.schema_name == "MemoryExtractionPrompt":
            return {"facts": [{"text": "I live in Genoa", "kind": "fact", "sensitive": False}]}
        return sensible(request)

    model.answer = credulous
    for said in (
        "If I were tall and lived in Genoa, what stew could I cook?",
        "my friend lives in Genoa",
        '"I live in Genoa" is a song',
        "Does anybody live in Genoa?",
    ):
        await ask(server, said)
        await server.app[MEMORY].settled()
        assert await texts(server) == [], said
    await ask(server, "I live in Genoa, which stew can I cook?")
    await server.app[MEMORY].settled()
    assert await texts(server) == ["I live in Genoa"]
