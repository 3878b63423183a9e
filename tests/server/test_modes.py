"""`mode=summarize` and `mode=generate`, with and without a model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ADMIN, KITCHEN, Serve
from tests.fakes.openai_server import Cut, Fail, Hang, ModelRequest, Say, ScriptedModel
from tests.fakes.sensible_model import tagged_items

NO_MEMORY = {"is_memory_request": False, "memory_request": ""}


def playing(answer: Any, score: int = 80) -> Any:
    """A model that ranks everything alike and gives this answer or summary."""

    def reply(request: ModelRequest) -> Any:
        if request.schema_name.startswith("RankingPrompt"):
            items, _ = tagged_items(request.prompt)
            return [{"tag": item["tag"], "score": score, "description": "It fits."} for item in items]
        if request.schema_name == "DetectMemoryRequestPrompt":
            return NO_MEMORY
        return answer(request) if callable(answer) else answer

    return reply


async def test_generate_streams_the_answer_once_with_its_sources(serve: Serve, model: ScriptedModel) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    text = 'Cook the tofu curry [1], or a "stew" [2].\nNot this one [77].'
    model.answer = playing({"answer": text, "urls": []})
    frames = await server.ask("a vegan stew or curry", mode="generate", site="kitchen")
    whole = frames.one("nlws")
    expected = text.replace(" [77]", "")
    assert "".join(frame["text"] for frame in frames.of("nlws_delta")) == expected == whole["answer"]
    assert len(frames.of("nlws_delta")) > 1
    assert [item["n"] for item in whole["items"]] == [1, 2]
    assert whole["considered"]
    assert frames.of("result_batch") == []
    assert frames.one("complete")["order"] == [item["document_id"] for item in whole["items"]]


async def test_every_citation_is_a_source_that_was_in_the_prompt(serve: Serve, model: ScriptedModel) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    model.answer = playing({"answer": "All of them: [1][2][3][4][5][6]", "urls": []})
    whole = (await server.ask("stew, curry, soup, tart", mode="generate", site="kitchen")).one("nlws")
    (asked,) = [r for r in model.requests if r.schema_name == "SynthesizePromptForGenerate"]
    for item in whole["items"]:
        assert re.search(rf'"n":\s*{item["n"]},\s*"url":\s*"{re.escape(item["url"])}"', asked.prompt)
    assert {int(n) for n in re.findall(r"\[(\d+)\]", whole["answer"])} == {i["n"] for i in whole["items"]}


async def test_generate_never_asks_for_an_answer_without_facts(serve: Serve, model: ScriptedModel) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    model.answer = playing({"answer": "Made up.", "urls": []}, score=10)
    frames = await server.ask("stew", mode="generate")
    assert frames.one("no_results")["reason"] == "below_min_score"
    assert frames.of("nlws") == []
    assert not [r for r in model.requests if r.schema_name == "SynthesizePromptForGenerate"]


@pytest.mark.parametrize("said", ["[1]", " [1] [2].", "[1, 2]", "[9]"])
async def test_numbers_of_sources_without_a_word_are_no_answer(
    serve: Serve, model: ScriptedModel, said: str
) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    model.answer = playing({"answer": said, "urls": ["https://kitchen.example/beef-stew"]})
    frames = await server.ask("stew", mode="generate", site="kitchen")
    assert frames.one("error")["code"] == "model_reply"
    assert frames.of("nlws_delta") == []
    assert frames.one("nlws")["extractive"]
    assert re.search("stew", frames.one("nlws")["answer"])


async def test_an_answer_whose_words_are_all_in_brackets_comes_once(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    model.answer = playing({"answer": "[Cook the stew", "urls": ["https://kitchen.example/beef-stew"]})
    frames = await server.ask("stew", mode="generate", site="kitchen")
    answer = frames.one("nlws")["answer"]
    assert answer == "".join(frame["text"] for frame in frames.of("nlws_delta"))
    assert answer.count("Cook the stew") == 1


@pytest.mark.parametrize(
    ("setting", "score", "answered"),
    [(None, 54, False), (None, 55, True), (80, 60, False), (80, 85, True), (20, 40, True), (20, 10, False)],
)
async def test_the_least_score_of_the_settings_holds_for_sources_too(
    serve: Serve, model: ScriptedModel, setting: int | None, score: int, answered: bool
) -> None:
    server = await serve(model=model, ranking={} if setting is None else {"min_score": setting})
    await server.load("kitchen", KITCHEN)
    model.answer = playing({"answer": "Cook a stew [1].", "urls": []}, score=score)
    frames = await server.ask("stew", mode="generate", site="kitchen")
    assert bool(frames.of("nlws")) == answered
    assert bool(frames.of("no_results")) == (not answered)


async def test_generate_without_a_model_takes_the_best_sentences(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    frames = await server.ask("vegan curry with tofu", mode="generate", site="kitchen")
    whole = frames.one("nlws")
    assert "tofu" in whole["answer"]
    assert "[1]" in whole["answer"]
    assert whole["items"][0]["name"] == "Tofu curry"


@pytest.mark.parametrize("broken", [Fail(500), "", Say("", finish="stop")])
async def test_model_that_writes_nothing_is_named_and_sentences_stand_in(
    serve: Serve, model: ScriptedModel, broken: Any
) -> None:
    server = await serve(model=model, llm={"max_retries": 0})
    await server.load("kitchen", KITCHEN)
    model.answer = playing(lambda _: broken)
    frames = await server.ask("beef stew", mode="generate", site="kitchen")
    assert frames.of("error")
    assert frames.one("nlws")["answer"]
    assert frames.one("complete")["degraded"]


@pytest.mark.parametrize("text", ["It takes two hours.", "It takes two hours [77].", "lorem ipsum dolor"])
async def test_answer_that_cites_none_of_its_sources_is_never_shown(
    serve: Serve, model: ScriptedModel, text: str
) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    model.answer = playing({"found": "all", "answer": text, "urls": []})
    frames = await server.ask("beef stew", mode="generate", site="kitchen")
    assert frames.of("nlws_delta") == []
    written = frames.one("nlws")
    assert text[:10] not in written["answer"]
    assert "Beef and carrots braised slowly in red wine. [1]" in written["answer"]
    assert "found" not in written
    assert frames.one("error")["code"] == "model_reply"
    assert frames.one("complete")["degraded"]


@pytest.mark.parametrize("question", ["who invented the stew?", "wer hat Minestrone oder Curry erfunden?"])
async def test_that_the_sources_do_not_say_it_is_an_answer(
    serve: Serve, model: ScriptedModel, question: str
) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    said = "Davon steht hier nichts." if question.startswith("wer") else "Nothing here says that."
    model.answer = playing({"found": "nothing", "answer": said, "urls": []})
    frames = await server.ask(question, mode="generate", site="kitchen")
    written = frames.one("nlws")
    assert (written["answer"], written["found"], written["items"]) == (said, "nothing", [])
    assert written["considered"]
    assert "".join(frame["text"] for frame in frames.of("nlws_delta")) == said
    assert not frames.of("error")
    assert not frames.one("complete")["degraded"]
    (asked,) = [r for r in model.requests if r.schema_name == "SynthesizePromptForGenerate"]
    assert f'name="request.language">{"de" if question.startswith("wer") else "en"}<' in asked.prompt


@pytest.mark.parametrize("keys", [("found", "answer", "urls"), ("urls", "answer", "found")])
@pytest.mark.parametrize(("said", "found"), [("part", "part"), ("all", "all"), ("nothing", "part")])
async def test_little_found_is_told_apart_from_nothing(
    serve: Serve, model: ScriptedModel, said: str, found: str, keys: tuple[str, ...]
) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    reply = {"found": said, "answer": "It is braised [1]; for how long is not said.", "urls": []}
    model.answer = playing({key: reply[key] for key in keys})
    frames = await server.ask("how long does beef stew take?", mode="generate", site="kitchen")
    assert frames.one("nlws")["found"] == found
    assert len(frames.one("nlws")["items"]) == 1


async def test_prompt_that_knows_no_numbers_cites_by_address(
    serve: Serve, model: ScriptedModel, tmp_path: Path
) -> None:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "site.xml").write_text(
        '<root><Thing><Prompt ref="SynthesizePromptForGenerate">'
        "<promptString>{request.query} {request.answers}</promptString>"
        '<returnStruc>{"answer": "string", "urls": "urls of the items used"}</returnStruc>'
        "</Prompt></Thing></root>",
        encoding="utf-8",
    )
    server = await serve(model=model, prompts_dir=tmp_path / "prompts")
    await server.load("kitchen", KITCHEN)
    address = "https://kitchen.example/beef-stew"
    model.answer = playing({"answer": "It is braised.", "urls": [address, "https://elsewhere.example/"]})
    frames = await server.ask("beef stew", mode="generate", site="kitchen")
    written = frames.one("nlws")
    (source,) = written["items"]
    assert (written["answer"], source["url"]) == (f"It is braised. [{source['n']}]", address)
    assert "".join(frame["text"] for frame in frames.of("nlws_delta")) == written["answer"]
    model.answer = playing({"answer": "It is braised.", "urls": ["https://elsewhere.example/"]})
    frames = await server.ask("beef stew", mode="generate", site="kitchen")
    assert frames.one("error")["code"] == "model_reply"


async def test_answer_that_is_cut_keeps_what_was_written(serve: Serve, model: ScriptedModel) -> None:
    server = await serve(model=model, llm={"max_retries": 0})
    await server.load("kitchen", KITCHEN)
    text = "Beef stew takes two hours [1]. " * 10
    model.answer = playing(lambda _: Cut(after_chars=120, reply={"answer": text, "urls": []}))
    frames = await server.ask("beef stew", mode="generate", site="kitchen")
    whole = frames.one("nlws")
    assert whole["answer"]
    assert text.startswith(whole["answer"])
    assert frames.of("error")
    assert frames.one("complete")["degraded"]


async def test_summarize_adds_a_summary_of_the_best_to_the_list(serve: Serve, model: ScriptedModel) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    model.answer = playing({"summary": "Five dishes were found."})
    frames = await server.ask("stew soup curry tart", mode="summarize", site="kitchen")
    assert frames.one("summary")["message"] == "Five dishes were found."
    assert frames.final
    assert frames.kinds.index("summary") > frames.kinds.index("result_batch")


async def test_summarize_without_a_model_or_with_a_failing_one(serve: Serve, model: ScriptedModel) -> None:
    plain = await serve(folder="plain")
    await plain.load("kitchen", KITCHEN)
    assert "Beef stew" in (await plain.ask("beef stew", mode="summarize")).one("summary")["message"]
    server = await serve(model=model, llm={"max_retries": 0})
    await server.load("kitchen", KITCHEN)
    model.answer = playing(Fail(500))
    frames = await server.ask("beef stew", mode="summarize")
    assert frames.of("summary") == []
    assert frames.final
    assert frames.one("error")["code"] == "model_failed"


async def test_json_answer_of_both_modes(serve: Serve, model: ScriptedModel) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    model.answer = playing(
        lambda r: {"summary": "S."} if "Summar" in r.schema_name else {"answer": "A [1].", "urls": []}
    )
    body = {"query": "beef stew", "streaming": False, "generate_mode": "generate"}
    _, generated = await server.json("POST", "/ask", json=body)
    assert generated["nlws"]["answer"] == "A [1]."
    assert generated["results"] == []
    _, summarized = await server.json("POST", "/ask", json={**body, "generate_mode": "summarize"})
    assert summarized["summary"]["message"] == "S."
    assert summarized["results"]


async def test_operator_sees_every_model_call_with_its_filled_prompt(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    model.answer = playing({"summary": "S."})
    auth = {"Authorization": f"Bearer {ADMIN}"}
    frames = await server.ask("beef stew", mode="summarize", debug=True, headers=auth)
    told = frames.one("debug")
    assert [call["step"] for call in told["model_calls"]].count("RankingPrompt") == 1
    for call in told["model_calls"]:
        assert re.search(r"site_types\.xml:\d+$", call["prompt"])
        assert call["calls"] == 1
        assert call["tokens_in"] > 0
        assert call["text"] in [request.prompt for request in model.requests]
        assert call["reply"]
    assert told["steps"]["retrieval"] > 0
    assert frames.one("complete")["usage"]["model_calls"] == len(told["model_calls"])


async def test_debug_is_for_operators_alone(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    status, _ = await server.json("POST", "/ask", json={"query": "stew", "debug": True})
    assert status == 403
    assert (await server.ask("stew")).of("debug") == []


@pytest.mark.parametrize("mode", ["list", "summarize", "generate"])
async def test_model_that_never_answers_is_waited_for_once(
    serve: Serve, model: ScriptedModel, mode: str
) -> None:
    server = await serve(model=model, llm={"timeout_s": 0.3, "max_retries": 0})
    await server.load("kitchen", KITCHEN)
    model.answer = lambda _: Hang()
    frames = await server.ask("beef stew", prev=["tofu"], mode=mode, site="kitchen")
    asked = {request.schema_name for request in model.requests}
    assert asked <= {"PrevQueryDecontextualizer", "DetectMemoryRequestPrompt"}
    assert [frame["code"] for frame in frames.of("error")] == ["model_timeout"]
    assert frames.one("complete")["degraded"]
    assert frames.one("complete")["order"]
