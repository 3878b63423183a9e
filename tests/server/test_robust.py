"""What was found by trying to break it, each with the input that did."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from core.phrases import asked_of_memory
from server.keys import LOADER, STATE
from tests.conftest import ADMIN, KITCHEN, Serve, read_frames, recipe
from tests.fakes.openai_server import Hang, ModelRequest, ScriptedModel, Split
from tests.fakes.sensible_model import SensibleModel

AUTH = {"Authorization": f"Bearer {ADMIN}"}
HALF = "\\ud83d"  # half a surrogate pair, as JSON can say it and UTF-8 cannot


def replying(**by_ref: Any) -> Any:
    """A sensible model, but for the prompts named."""
    sensible = SensibleModel()

    def answer(request: ModelRequest) -> Any:
        reply = by_ref.get(request.schema_name)
        return sensible(request) if reply is None else reply

    return answer


async def test_half_a_character_in_a_rewritten_question_ends_no_answer(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    raw = f'{{"requires_decontextualization": true, "decontextualized_query": "vegan {HALF} stew"}}'
    model.answer = replying(PrevQueryDecontextualizer=raw)
    frames = await server.ask("a vegan one", prev=["stew"])
    assert frames.kinds[-1] == "complete"
    assert "vegan" in frames.one("decontextualized_query")["decontextualized_query"]
    assert frames.final


async def test_half_a_character_in_a_fact_ends_no_answer(serve: Serve, model: ScriptedModel) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    raw = f'{{"is_memory_request": true, "memory_request": "likes {HALF} stew"}}'
    model.answer = replying(DetectMemoryRequestPrompt=raw)
    frames = await server.ask("Remember that I like a vegan stew")
    assert frames.final
    assert "likes" in frames.one("remember")["item_to_remember"]


@pytest.mark.parametrize("delta", ['"x"', "[]", "5", '{"content": {"a": 1}}'])
async def test_reply_of_a_strange_shape_loses_no_item(serve: Serve, model: ScriptedModel, delta: str) -> None:
    server = await serve(model=model, llm={"max_retries": 0})
    await server.load("kitchen", KITCHEN)
    chunk = f'data: {{"choices":[{{"delta":{delta}}}]}}\n\ndata: [DONE]\n\n'.encode()
    model.answer = replying(RankingPrompt=Split([chunk]))
    frames = await server.ask("beef stew")
    assert {item["ranking_type"] for item in frames.final} == {"RETRIEVAL"}
    assert frames.of("error")
    assert frames.one("complete")["degraded"]


async def test_deeply_nested_item_is_stored_and_answered(serve: Serve) -> None:
    server = await serve()
    nested: Any = {"end": True}
    for _ in range(300):
        nested = {"a": nested}
    item = {"url": "https://k.example/deep", "text": "Xyloba soup.", "item": nested, "name": "Xyloba"}
    report = await server.load("kitchen", [item])
    assert report["added"] == 1
    frames = await server.ask("xyloba")
    assert [found["name"] for found in frames.final] == ["Xyloba"]
    status, whole = await server.json("GET", "/ask", params={"query": "xyloba", "streaming": "false"})
    assert (status, len(whole["results"])) == (200, 1)


async def test_one_long_document_does_not_crowd_out_the_others(serve: Serve) -> None:
    server = await serve(ingestion={"max_tokens_per_paragraph": 40})
    handbook = recipe("handbook", "Pumpkin soup handbook", " ".join(["Pumpkin soup needs pumpkin."] * 4000))
    others = [recipe(f"s{n}", f"Soup {n}", "A soup with pumpkin.") for n in range(15)]
    await server.load("kitchen", [handbook, *others])
    assert len((await server.ask("pumpkin soup")).final) == 10


async def test_same_address_in_two_sites_is_two_documents(serve: Serve) -> None:
    server = await serve()
    for site in ("one", "two"):
        await server.load(site, [recipe("soup", f"Soup of {site}", "A soup.")])
    status, whole = await server.json(
        "POST", "/ask", json={"query": "soup", "streaming": False, "max_results": 1}
    )
    assert (status, len(whole["results"])) == (200, 1)
    both = await server.ask("soup")
    assert len({item["document_id"] for item in both.final}) == 2


async def test_head_runs_no_question(serve: Serve, model: ScriptedModel) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    async with server.session.head(f"{server.url}/ask", params={"query": "soup"}) as response:
        assert await response.read() == b""
    assert (await server.json("GET", "/health"))[0] == 200
    assert model.requests == []


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"query=a", {"Content-Type": "application/x-www-form-urlencoded; charset=bogus"}),
        (b"query=a", {"Content-Type": "application/x-www-form-urlencoded; charset=hex"}),
        (b"query=\xff\xfe", {"Content-Type": "application/x-www-form-urlencoded"}),
        (b"query=a", {"Content-Type": "multipart/form-data"}),
        (b"junk", {"Content-Type": "multipart/form-data; boundary=x"}),
        (b"junk", {"Content-Type": "application/json", "Content-Encoding": "gzip"}),
    ],
)
async def test_body_that_cannot_be_read_is_the_clients_mistake(
    serve: Serve, body: bytes, headers: dict[str, str]
) -> None:
    server = await serve()
    async with server.session.post(f"{server.url}/ask", data=body, headers=headers) as response:
        assert response.status == 400


@pytest.mark.parametrize("path", ["/static/%00", "/static/app.js%00.html"])
async def test_nul_in_a_path_is_not_found(serve: Serve, path: str) -> None:
    server = await serve()
    assert (await server.json("GET", path))[0] == 404


async def test_credential_that_is_no_text_is_refused(serve: Serve) -> None:
    server = await serve()
    status, _ = await server.json("GET", "/documents", headers={"Authorization": "Bearer \udcff\udcfe"})
    assert status in (401, 403)


async def test_lost_vectors_are_written_again_from_the_database(serve: Serve, tmp_path: Path) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    await server.runner.cleanup()
    shutil.rmtree(tmp_path / "data" / "vectors")
    again = await serve()
    await again.app[LOADER].refill()
    assert await again.app[LOADER].missing() == 0
    assert (await again.ask("beef stew")).final[0]["name"] == "Beef stew"
    assert (await again.load("kitchen", KITCHEN))["unchanged"] == len(KITCHEN)
    assert again.app[STATE].busy == set()


async def test_stopping_server_ends_running_answers_properly(serve: Serve, model: ScriptedModel) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    model.answer = lambda _: Hang()
    async with server.session.post(f"{server.url}/ask", json={"query": "stew"}) as response:
        await model.seen(2)
        await server.app.shutdown()
        frames = await read_frames(response)
    assert frames.kinds[-2:] == ["error", "complete"]
    assert frames.one("complete")["degraded"]


@pytest.mark.parametrize(
    "text", ["a" + " " * 7990 + "b", "remember that x" + "!" * 7980 + "x", "기억" * 3000, "forget " * 1100]
)
def test_long_messages_are_no_memory_requests(text: str) -> None:
    assert asked_of_memory(text).requests == ()


async def test_follow_up_that_could_not_be_rewritten_is_judged_with_the_question_before(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await serve(model=model, llm={"max_retries": 0})
    await server.load("kitchen", KITCHEN)
    model.answer = replying(PrevQueryDecontextualizer=500)
    frames = await server.ask("and cheap ones?", prev=["vegan stew with chickpeas"])
    assert frames.final
    assert frames.final[0]["name"] == "Chickpea stew"
    (ranking,) = [r for r in model.requests if r.schema_name == "RankingPrompt"]
    assert "vegan stew with chickpeas and cheap ones?" in ranking.prompt
