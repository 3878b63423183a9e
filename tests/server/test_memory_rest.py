"""A person's facts over the public routes: seen, changed, taken back, taken along and taken out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from server.keys import FACTS, MEMORY
from tests.conftest import ADMIN, KITCHEN, Frames, Serve, Served
from tests.core.memory.support import DAY_S, Clock, held
from tests.core.test_phrases import STATEMENTS
from tests.fakes.openai_server import ModelRequest, ScriptedModel
from tests.fakes.sensible_model import SensibleModel, asked_in

KEY = "a-key-of-the-tests-1"
OTHER = "a-key-of-the-tests-2"
AUTH = {
    "api_keys": [
        {"key": KEY, "name": "shop", "roles": ["read", "act-as"]},
        {"key": OTHER, "name": "bank", "roles": ["read", "act-as"]},
        {"key": "a-key-of-the-tests-3", "name": "reader", "roles": ["read"]},
    ]
}


def user(name: str, key: str = KEY) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}", "X-User-Id": name}


ANNA, BO = user("anna"), user("bo")


async def kitchen(serve: Serve, **more: Any) -> Served:
    server = await serve(auth=AUTH, **more)
    await server.load("kitchen", KITCHEN)
    return server


async def ask(server: Served, query: str, headers: Mapping[str, str] = ANNA, **more: Any) -> Frames:
    return await server.ask(query, headers=dict(headers), site="kitchen", **more)


async def keep(server: Served, text: str, headers: Mapping[str, str] = ANNA, **more: Any) -> dict[str, Any]:
    status, kept = await server.json("POST", "/memory", json={"text": text, **more}, headers=headers)
    assert status in (200, 201), kept
    assert isinstance(kept, dict)
    return kept


async def texts(server: Served, headers: Mapping[str, str] = ANNA) -> list[str]:
    status, told = await server.json("GET", "/memory", headers=headers)
    assert status == 200
    return sorted(fact["text"] for fact in told["memories"])


@pytest.mark.both_databases
async def test_the_newer_fact_is_recalled_and_the_older_can_be_restored(serve: Serve) -> None:
    server = await kitchen(serve)
    first = (await ask(server, "Remember that I love coriander")).one("remember")
    (await ask(server, "Remember that I can't stand coriander any more")).one("remember")
    used = (await ask(server, "a curry")).one("used_memories")["items"]
    assert [fact["text"] for fact in used] == ["I can't stand coriander any more"]
    _, told = await server.json("GET", f"/memory/{first['memory_id']}/history", headers=ANNA)
    assert [step["event"] for step in told["history"]] == ["ADD", "SUPERSEDE"]
    status, restored = await server.json("POST", f"/memory/{first['memory_id']}/restore", headers=ANNA)
    assert (status, restored["status"]) == (200, "active")
    assert await texts(server) == ["I love coriander"]


@pytest.mark.both_databases
async def test_routes_keep_change_and_forget(serve: Serve) -> None:
    server = await kitchen(serve)
    kept = await keep(server, "My oven is small", kind="fact", site="kitchen", metadata={"from": "form"})
    path = f"/memory/{kept['memory_id']}"
    assert (await keep(server, "my OVEN is small"))["memory_id"] == kept["memory_id"]
    _, shown = await server.json("GET", path, headers=ANNA)
    assert (shown["text"], shown["site"], shown["metadata"]) == (
        "My oven is small",
        "kitchen",
        {"from": "form"},
    )
    _, changed = await server.json("PATCH", path, json={"text": "My oven is big"}, headers=ANNA)
    assert changed["text"] == "My oven is big"
    _, found = await server.json("GET", "/memory", params={"query": "big oven"}, headers=ANNA)
    assert found["memories"][0]["score"] > 0
    _, elsewhere = await server.json("GET", "/memory", params={"site": "docs"}, headers=ANNA)
    assert (elsewhere["memories"], elsewhere["total"]) == ([], 0)
    status, gone = await server.json("DELETE", path, headers=ANNA)
    assert (status, gone) == (200, {"forgotten": [kept["memory_id"]]})
    assert (await server.json("GET", path, headers=ANNA))[0] == 404
    assert (await server.json("DELETE", path, headers=ANNA))[0] == 404


@pytest.mark.parametrize("other", [BO, user("anna", OTHER), user("anna", ADMIN)])
async def test_anothers_fact_is_not_there_for_anybody_else(serve: Serve, other: dict[str, str]) -> None:
    server = await kitchen(serve)
    memory_id = (await keep(server, "My oven is small"))["memory_id"]
    for method, path, body in [
        ("GET", f"/memory/{memory_id}", None),
        ("PATCH", f"/memory/{memory_id}", {"text": "x"}),
        ("DELETE", f"/memory/{memory_id}", None),
        ("GET", f"/memory/{memory_id}/history", None),
        ("POST", f"/memory/{memory_id}/restore", None),
    ]:
        status, answer = await server.json(method, path, json=body, headers=other)
        assert (status, answer["error"]["code"]) == (404, "not_found")
    assert await texts(server, other) == []
    assert (await ask(server, "what do you know about me?", other)).one("memories")["items"] == []
    assert "oven" not in str(await server.json("GET", "/memory/export", headers=other))
    await server.json("DELETE", "/memory?all=true", headers=other)
    assert await texts(server) == ["My oven is small"]


async def test_nobody_known_has_no_memory(serve: Serve) -> None:
    server = await kitchen(serve)
    for method, path in [("GET", "/memory"), ("DELETE", "/memory?all=true"), ("GET", "/memory/export")]:
        assert (await server.json(method, path))[0] == 401
        assert (await server.json(method, path, headers={"Authorization": f"Bearer {KEY}"}))[0] == 403
    for name in ("", "*", " "):
        assert (await server.json("GET", "/memory", headers=user(name)))[0] == 400
    reader = user("anna", "a-key-of-the-tests-3")
    assert (await server.json("GET", "/memory", headers=reader))[0] == 403


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "text"),
        ({"text": " "}, "text"),
        ({"text": "x" * 1001}, "text"),
        ({"text": "a", "kind": "rumour"}, "kind"),
        ({"text": "a", "scope": "world"}, "scope"),
        ({"text": "a", "scope": "thread"}, "conversation_id"),
        ({"text": "a", "metadata": {"user_id": "bo"}}, "metadata"),
        ({"text": "a", "expires_in": "soon"}, "expires_in"),
        ({"text": "a", "expires_in": "0s"}, "expires_in"),
        ({"text": "a", "expires_in": "0.0d"}, "expires_in"),
        ({"text": "a", "expires_in": 60}, "expires_in"),
        ({"text": "a", "expires_in": None}, "expires_in"),
        ({"text": "a", "expires_in": "9" * 400 + "d"}, "expires_in"),
        ({"text": "a", "expires_at": "1d"}, "expires_at"),
        ({"text": "a", "user_id": "bo"}, "user_id"),
        ({"text": "a", "kind": ["fact"]}, "kind"),
        ({"text": "a", "site": 5}, "site"),
        ({"text": "a", "subject": {"x": 1}}, "subject"),
    ],
)
async def test_bad_facts_are_refused_naming_the_field(serve: Serve, body: dict[str, Any], field: str) -> None:
    server = await kitchen(serve)
    status, answer = await server.json("POST", "/memory", json=body, headers=ANNA)
    assert (status, answer["error"]["field"]) == (400, field)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "body"),
        ({"expires_in": "0s"}, "expires_in"),
        ({"expires_in": "-1d"}, "expires_in"),
        ({"expires_in": ["1d"]}, "expires_in"),
        ({"expires_in": "36501d"}, "expires_in"),
        ({"text": "b", "txet": "c"}, "txet"),
        ({"text": None}, "text"),
        ({"kind": "rumour"}, "kind"),
        ({"kind": 5}, "kind"),
        ({"scope": "thread"}, "scope"),
        ({"metadata": []}, "metadata"),
    ],
)
async def test_bad_changes_are_refused_naming_the_field(
    serve: Serve, body: dict[str, Any], field: str
) -> None:
    server = await serve(auth=AUTH)
    path = f"/memory/{(await keep(server, 'My oven is small'))['memory_id']}"
    status, answer = await server.json("PATCH", path, json=body, headers=ANNA)
    assert (status, answer["error"]["field"]) == (400, field)
    assert await texts(server) == ["My oven is small"]


async def test_a_fact_lasts_as_long_as_was_said(serve: Serve) -> None:
    clock = Clock()
    server = await serve(auth=AUTH, clock=clock)
    kept = await keep(server, "I love coriander", expires_in="2d")
    await keep(server, "My oven is small", expires_in="2d")
    await server.json("PATCH", f"/memory/{kept['memory_id']}", json={"expires_in": "5d"}, headers=ANNA)
    clock.now += 3 * DAY_S
    assert await texts(server) == ["I love coriander"]
    clock.now += 3 * DAY_S
    assert await texts(server) == []


async def test_a_fact_is_bound_to_no_site_that_its_teller_may_not_read(serve: Serve) -> None:
    limited = {"key": "a-key-of-the-tests-4", "name": "kiosk", "roles": ["read", "act-as"], "sites": ["docs"]}
    server = await serve(auth={"api_keys": [*AUTH["api_keys"], limited]})
    await server.load("docs", KITCHEN)
    await server.load("secret", KITCHEN)
    kiosk = user("anna", "a-key-of-the-tests-4")
    told = []
    for site in ("secret", "nowhere"):
        body = {"text": "My oven is small", "scope": "application", "site": site}
        status, answer = await server.json("POST", "/memory", json=body, headers=kiosk)
        assert (status, answer["error"]["field"]) == (404, "site")
        told.append(answer["error"]["message"].replace(site, "X"))
        assert (await server.json("POST", "/memory", json=body, headers=ANNA))[0] in (200, 201)
    assert told[0] == told[1]
    await keep(server, "My oven is big", kiosk, scope="application", site="docs")
    assert await texts(server, kiosk) == ["My oven is big"]


async def test_a_person_can_ask_what_is_known_and_have_it_forgotten(serve: Serve) -> None:
    server = await kitchen(serve)
    await keep(server, "I love coriander")
    await keep(server, "My oven is small")
    told = await ask(server, "What do you know about me?")
    assert {fact["text"] for fact in told.one("memories")["items"]} == {
        "I love coriander",
        "My oven is small",
    }
    assert told.of("no_results") == told.items == []
    gone = (await ask(server, "forget that I love coriander")).one("forgotten")
    assert [fact["text"] for fact in gone["items"]] == ["I love coriander"]
    assert "confirm" not in gone
    assert await texts(server) == ["My oven is small"]
    assert (await ask(server, "forget that I own a yacht")).one("forgotten")["items"] == []


async def test_forgetting_several_or_everything_is_confirmed_first(serve: Serve) -> None:
    server = await kitchen(serve)
    await keep(server, "My gas oven is small")
    await keep(server, "My bread oven is outside")
    some = (await ask(server, "forget what you know about my ovens")).one("forgotten")
    assert len(some["items"]) == 2
    assert len(await texts(server)) == 2
    status, _ = await server.json("POST", "/memory/confirm", json={"token": some["confirm"]}, headers=BO)
    assert status == 403
    _, done = await server.json("POST", "/memory/confirm", json={"token": some["confirm"]}, headers=ANNA)
    assert len(done["forgotten"]) == 2
    await keep(server, "I love coriander")
    everything = (await ask(server, "forget everything about me")).one("forgotten")
    assert await texts(server) == ["I love coriander"]
    _, done = await server.json(
        "POST", "/memory/confirm", json={"token": everything["confirm"]}, headers=ANNA
    )
    assert done["erased"]["memory"]["memories"] == 1
    assert await texts(server) == []


async def test_what_the_model_reads_as_forgetting_is_asked_about(serve: Serve, model: ScriptedModel) -> None:
    server = await kitchen(serve, model=model)
    await keep(server, "I love coriander")
    model.answer = _memory_reply({"action": "forget", "memory_request": "I love coriander"})
    told = (await ask(server, "coriander is so over for me, drop it")).one("forgotten")
    assert told["confirm"]
    assert await texts(server) == ["I love coriander"]


def _memory_reply(reply: Mapping[str, Any]) -> Callable[[ModelRequest], Any]:
    sensible = SensibleModel()

    def answer(request: ModelRequest) -> Any:
        if request.schema_name == "DetectMemoryRequestPrompt":
            full = {"is_memory_request": True, "action": "remember", "kind": "fact", "sensitive": False}
            return {**full, **reply}
        return sensible(request)

    return answer


_remembers_nothing = _memory_reply({"is_memory_request": False, "memory_request": "", "action": "remember"})


def _takes_every_word(request: ModelRequest) -> Any:
    """A model that takes whatever is said for something to remember."""
    return _memory_reply({"memory_request": asked_in(request.prompt)})(request)


@pytest.mark.parametrize(
    ("said", "reply"),
    [
        ("hi", {"memory_request": "The user wants short answers"}),
        ("a quick dinner", {"memory_request": "Works as a software developer at Google"}),
        ("a quick dinner", {"memory_request": "", "action": "remember"}),
        ("a quick dinner", {"is_memory_request": False, "memory_request": "quick dinner"}),
        # A model that is wrong: it was said, and not to be remembered.
        ("I love coriander", {"memory_request": "I love coriander"}),
        ("I'm allergic to walnuts, what cake can I bake?", {"memory_request": "allergic to walnuts"}),
        ("Do you remember that I live in Genoa?", {"memory_request": "lives in Genoa"}),
        ("Remember that my friend Ann hates garlic", {"memory_request": "Ann hates garlic"}),
        ("My mother said: remember that I love you", {"memory_request": "I love you"}),
        ("never mind, don't save that I love coriander", {"memory_request": "I love coriander"}),
    ],
)
async def test_what_the_person_did_not_say_is_not_stored(
    serve: Serve, model: ScriptedModel, said: str, reply: dict[str, Any]
) -> None:
    server = await kitchen(serve, model=model)
    model.answer = _memory_reply(reply)
    assert (await ask(server, said)).of("remember") == []
    assert await texts(server) == []


@pytest.mark.parametrize("with_model", ["no model", "a right model", "a wrong model"])
async def test_thirty_statements_of_other_kinds_store_nothing(
    serve: Serve, model: ScriptedModel, with_model: str
) -> None:
    server = await kitchen(serve, **({} if with_model == "no model" else {"model": model}))
    model.answer = _takes_every_word if with_model == "a wrong model" else _remembers_nothing
    assert len(STATEMENTS) >= 30
    for said in STATEMENTS:
        frames = await ask(server, said)
        assert frames.of("remember") == frames.of("forgotten") == frames.of("memories") == [], said
    assert await texts(server) == []


@pytest.mark.parametrize("with_model", [False, True])
async def test_beside_a_question_a_fact_is_kept_and_the_question_answered(
    serve: Serve, model: ScriptedModel, with_model: bool
) -> None:
    server = await kitchen(serve, **({"model": model} if with_model else {}))
    model.answer = SensibleModel()
    frames = await ask(server, "Remember that I love tofu. Which curry can I cook?")
    assert frames.one("remember")["item_to_remember"].startswith("I love tofu")
    assert frames.final
    assert len(await texts(server)) == 1


async def test_beside_a_question_forgetting_is_asked_about_and_the_question_answered(serve: Serve) -> None:
    server = await kitchen(serve)
    await keep(server, "I love tofu")
    frames = await ask(server, "Forget that I love tofu. Which curry can I cook?")
    assert frames.one("forgotten")["confirm"]
    assert frames.final
    assert await texts(server) == ["I love tofu"]


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("나는 두부를 좋아한다고 기억해 줘", "두부 요리"),
        ("请记住我家的烤箱很小", "用烤箱做什么好"),
        ("내 오븐이 작다고 기억해 줘", "오븐으로 만드는 요리"),
        ("记住我喜欢 tofu", "tofu 怎么做"),
    ],
)
async def test_chinese_and_korean_facts_are_kept_by_phrase_and_recalled(
    serve: Serve, said: str, asked: str
) -> None:
    server = await kitchen(serve)
    told = (await ask(server, said)).one("remember")
    assert told["memory_id"]
    used = (await ask(server, asked)).one("used_memories")["items"]
    assert [fact["text"] for fact in used] == [told["item_to_remember"]]


async def test_several_facts_in_one_message_are_several(serve: Serve, model: ScriptedModel) -> None:
    server = await kitchen(serve, model=model)
    model.answer = _memory_reply({"memory_request": "cooks for five; has a small oven"})
    frames = await ask(server, "remember that I cook for five and have a small oven")
    assert [told["item_to_remember"] for told in frames.of("remember")] == [
        "cooks for five",
        "has a small oven",
    ]


@pytest.mark.both_databases
async def test_undo_takes_the_fact_out_of_every_later_prompt(serve: Serve, model: ScriptedModel) -> None:
    server = await kitchen(serve, model=model)
    model.answer = SensibleModel(rewrites={"and with rice?": "a dinner with rice"})
    told = (await ask(server, "Remember that I love vermilion kettles", conversation_id="c1")).one("remember")
    await ask(server, "stew", conversation_id="c1")
    assert [r for r in model.requests if r.schema_name == "RankingPrompt" and "vermilion" in r.prompt]
    status, _ = await server.json("DELETE", f"/memory/{told['memory_id']}?undo=true", headers=ANNA)
    assert status == 200
    model.requests.clear()
    for conversation_id in ("c1", "c2"):
        await ask(server, "and with rice?", conversation_id=conversation_id)
    assert model.requests
    assert not [request for request in model.requests if "vermilion" in request.prompt + request.system]


async def test_a_fact_told_in_one_conversation_is_used_a_day_later(
    serve: Serve, model: ScriptedModel
) -> None:
    clock = Clock()
    server = await kitchen(serve, model=model, clock=clock)
    model.answer = SensibleModel(rewrites={"and with rice?": "a vegan dinner with rice"})
    await ask(server, "Remember that I love coriander", conversation_id="monday")
    clock.now += DAY_S
    model.requests.clear()
    frames = await ask(server, "and with rice?", conversation_id="tuesday", prev=["dinner"])
    assert [fact["text"] for fact in frames.one("used_memories")["items"]] == ["I love coriander"]
    assert frames.one("decontextualized_query")["decontextualized_query"] == "a vegan dinner with rice"
    asked = {request.schema_name: request.prompt for request in model.requests}
    assert "I love coriander" in asked["PrevQueryDecontextualizer"]
    assert "I love coriander" in asked["RankingPrompt"]


async def test_likes_move_results_where_there_is_no_model(serve: Serve) -> None:
    server = await kitchen(serve)
    before = [item["name"] for item in (await ask(server, "vegan stew curry", BO)).final]
    await keep(server, f"I can't stand {before[0].split()[0]}")
    after = [item["name"] for item in (await ask(server, "vegan stew curry", ANNA)).final]
    assert set(after) == set(before)
    assert after[0] != before[0]


async def test_automatic_memory_learns_behind_the_answer(serve: Serve, model: ScriptedModel) -> None:
    server = await kitchen(serve, model=model, memory={"mode": "automatic"})
    sensible = SensibleModel()

    def answer(request: ModelRequest) -> Any:
        if request.schema_name == "MemoryExtractionPrompt":
            return {
                "facts": [
                    {"text": "Cooks for five people", "kind": "fact", "sensitive": False},
                    {"text": "Has diabetes", "kind": "constraint", "sensitive": True},
                    {"text": "Works at Google as a developer", "kind": "fact", "sensitive": False},
                ]
            }
        return sensible(request)

    model.answer = answer
    await ask(server, "I cook for five people and have diabetes, what stew?")
    await server.app[MEMORY].settled()
    assert await texts(server) == ["Cooks for five people"]
    _, told = await server.json("GET", "/memory", headers=ANNA)
    assert told["memories"][0]["source_turn"] == "I cook for five people and have diabetes, what stew?"
    prompts = [r.prompt for r in model.requests if r.schema_name == "MemoryExtractionPrompt"]
    assert len(prompts) == 1
    assert "stewed" not in prompts[0]
    # Nobody known, and what is not to be kept: nothing is learned.
    await server.ask("I cook for nine people", site="kitchen", headers={"Authorization": f"Bearer {KEY}"})
    await ask(server, "I cook for eight people", remember=False)
    await server.app[MEMORY].settled()
    assert len([r for r in model.requests if r.schema_name == "MemoryExtractionPrompt"]) == 1


async def test_a_memory_that_is_down_stops_no_answer(serve: Serve) -> None:
    server = await kitchen(serve)
    await keep(server, "I love coriander")
    await server.app[FACTS]._store.close()
    frames = await ask(server, "stew")
    assert frames.kinds[-1] == "complete"


async def test_erasing_takes_out_everything_of_one_person(serve: Serve, tmp_path: Path) -> None:
    server = await kitchen(serve)
    await ask(server, "Remember that my parrot is called Zanzibarquince", conversation_id="c1")
    await ask(server, "a curry for Zanzibarquince", conversation_id="c1")
    await keep(server, "Zanzibarquince sleeps at noon")
    second = (await keep(server, "I love zanzibarquince jam"))["memory_id"]
    await keep(server, "I can't stand zanzibarquince jam")
    await server.json("DELETE", f"/memory/{second}", headers=ANNA)
    await keep(server, "My oven is small", BO)
    data = tmp_path / "data"
    assert held(data, [b"anzibarquince"])
    assert (await server.json("DELETE", "/memory", headers=ANNA))[0] == 400
    status, answer = await server.json("DELETE", "/memory?all=true", headers=ANNA)
    assert status == 200
    assert answer["erased"]["memory"] == {"memories": 3, "vectors": 3, "history": 6}
    assert answer["erased"]["conversations"]["conversations"] == 1
    assert answer["erased"]["conversations"]["turns"] == 2
    assert held(data, [b"anzibarquince"]) == set()
    assert await texts(server) == []
    assert await texts(server, BO) == ["My oven is small"]
    assert (await ask(server, "stew")).of("used_memories") == []


@pytest.mark.both_databases
async def test_what_was_asked_before_an_erasure_is_not_kept_after_it(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await kitchen(serve, model=model)
    sensible, reading, erased = SensibleModel(), asyncio.Event(), []

    def slow_to_see_that_it_is_a_wish(request: ModelRequest) -> Any:
        if "memory" in request.schema_name.lower() and not erased:
            reading.set()
            return 0.005  # asked again then
        return sensible(request)

    model.answer = slow_to_see_that_it_is_a_wish
    asking = asyncio.create_task(ask(server, "Remember that I love coriander"))
    await reading.wait()
    status, _ = await server.json("DELETE", "/memory", params={"all": "true"}, headers=ANNA)
    assert status == 200
    erased.append(True)
    frames = await asking
    assert "erased" in frames.one("error")["message"]
    assert frames.of("remember") == []
    assert await texts(server) == []
    (await ask(server, "Remember that I love basil")).one("remember")
    assert await texts(server) == ["I love basil"]


@pytest.mark.both_databases
async def test_an_export_holds_facts_history_and_nothing_of_others(serve: Serve) -> None:
    server = await kitchen(serve)
    await keep(server, "I love coriander")
    await keep(server, "I can't stand coriander")
    await keep(server, "My oven is small", BO)
    _, told = await server.json("GET", "/memory/export", headers=ANNA)
    assert [(one["text"], one["status"]) for one in told["memories"]] == [
        ("I love coriander", "superseded"),
        ("I can't stand coriander", "active"),
    ]
    assert [step["event"] for step in told["memories"][0]["history"]] == ["ADD", "SUPERSEDE"]
    assert "oven" not in str(told)


async def test_the_operator_sees_and_takes_out_by_the_users_id(serve: Serve) -> None:
    server = await kitchen(serve)
    await keep(server, "My oven is small")
    await keep(server, "My oven is big", user("anna", OTHER))
    admin = {"Authorization": f"Bearer {ADMIN}"}
    assert (await server.json("GET", "/admin/memory?user=anna", headers=ANNA))[0] == 403
    status, told = await server.json("GET", "/admin/memory?user=anna", headers=admin)
    assert (status, told["error"]["field"]) == (400, "realm")
    where = {"user": "anna", "realm": "key:shop"}
    _, told = await server.json("GET", "/admin/memory", params=where, headers=admin)
    assert [one["text"] for one in told["memories"]] == ["My oven is small"]
    await server.json("DELETE", "/admin/memory", params={**where, "all": "true"}, headers=admin)
    assert await texts(server) == []
    assert await texts(server, user("anna", OTHER)) == ["My oven is big"]
    assert (await server.json("GET", "/admin/memory?user=nobody", headers=admin))[0] == 404


async def test_what_was_kept_can_be_taken_out_where_memory_is_off(serve: Serve) -> None:
    server = await kitchen(serve, memory={"mode": "off"})
    assert (await server.json("POST", "/memory", json={"text": "a fact"}, headers=ANNA))[0] == 404
    assert await texts(server) == []
    status, answer = await server.json("DELETE", "/memory?all=true", headers=ANNA)
    assert (status, answer["erased"]["memory"]["memories"]) == (200, 0)


async def test_a_visitors_facts_do_not_become_those_of_who_signs_in(serve: Serve) -> None:
    server = await kitchen(serve)
    told = await server.ask(
        "Remember that my oven is small", site="kitchen", headers={"Authorization": f"Bearer {KEY}"}
    )
    assert told.one("remember")["memory_id"] is None
    token = told.one("remember")["confirm"]
    status, kept = await server.json("POST", "/memory/confirm", json={"token": token})
    assert (status, kept["text"]) == (200, "my oven is small")
    assert await texts(server, {}) == ["my oven is small"]
    assert await texts(server, ANNA) == []


async def test_forgetting_what_is_not_kept_takes_nothing_else(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    told = (await server.ask("Remember that I love sailing")).one("remember")
    await server.json("POST", "/memory/confirm", json={"token": told["confirm"]})
    frames = await server.ask("Forget that I love pottery")
    _, kept = await server.json("GET", "/memory")
    assert "I love sailing" in str(kept)
    assert all("confirm" in frame or not frame["items"] for frame in frames.of("forgotten"))


async def test_a_confirmation_is_good_for_once_and_for_one_person(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    told = (await server.ask("Remember that I love sailing")).one("remember")
    body = {"token": told["confirm"]}
    assert (await server.json("POST", "/memory/confirm", json=body))[0] == 200
    async with await server.browser() as other:
        async with other.post(f"{server.url}/memory/confirm", json=body) as response:
            assert not response.cookies
        async with other.get(f"{server.url}/memory") as response:
            assert response.status == 401
    await server.json("DELETE", "/memory?all=true")
    await server.json("POST", "/memory/confirm", json=body)
    _, kept = await server.json("GET", "/memory")
    assert "sailing" not in str(kept)


async def test_a_page_and_its_total_are_of_the_site_and_the_query(serve: Serve) -> None:
    server = await kitchen(serve)
    for n in range(5):
        await keep(server, f"I own boat number {n}", site="kitchen" if n < 3 else "docs")
    await keep(server, "My oven is small", site="kitchen")

    async def page(**params: Any) -> tuple[list[str], int]:
        status, told = await server.json("GET", "/memory", params=params, headers=ANNA)
        assert status == 200, told
        return [fact["text"] for fact in told["memories"]], told["total"]

    everything, total = await page()
    assert (len(everything), total) == (6, 6)
    boats, total = await page(query="boat")
    assert (len(boats), total) == (5, 5)
    there, total = await page(query="boat", site="kitchen")
    assert (len(there), total) == (3, 3)
    assert await page(query="boat", limit="2", offset="4") == (boats[4:], 5)
    assert await page(query="boat", limit="2", offset="9") == ([], 5)
    assert await page(site="docs", limit="1", offset="1") == (["I own boat number 3"], 2)


async def test_numbers_that_are_none_and_ids_that_nobody_has_are_refused(serve: Serve) -> None:
    server = await kitchen(serve)
    await keep(server, "My oven is small")
    operator = {"Authorization": f"Bearer {ADMIN}"}
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    for name in ("limit", "offset"):
        for value in ("9" * 5000, "-1", "1.5", "", "٣", "10000000000", "1_0", "0x1"):
            for path, headers in (("/memory", ANNA), ("/admin/memory?user=anna", operator)):
                at = f"{path}{'&' if '?' in path else '?'}{name}={value}"
                status, told = await server.json("GET", at, headers=headers)
                assert (status, told["error"]["field"]) == (400, name), at[:80]
    for value in ("9" * 5000 + "d", 10**18, "36501d", True, ["1d"], {"d": 1}, deep):
        body = {"text": "My roof leaks", "expires_in": value}
        status, told = await server.json("POST", "/memory", json=body, headers=ANNA)
        assert (status, told["error"]["field"]) == (400, "expires_in"), str(value)[:80]
    for value in ("1", True, [1], {"at": 1}):
        body = {"since": value}
        status, told = await server.json("POST", "/admin/memory/replay-erasures", json=body, headers=operator)
        assert (status, told["error"]["field"]) == (400, "since")
    assert await texts(server) == ["My oven is small"]


@pytest.mark.both_databases
async def test_what_no_database_can_hold_is_answered_alike_by_each(serve: Serve) -> None:
    server = await kitchen(serve)
    program = {"Authorization": f"Bearer {KEY}"}
    operator = {"Authorization": f"Bearer {ADMIN}"}
    for method, path, headers, expected in [
        ("GET", "/memory/%00", ANNA, 404),
        ("GET", "/memory/%00/history", ANNA, 404),
        ("POST", "/memory/%00/restore", ANNA, 404),
        ("DELETE", "/memory/%00", ANNA, 404),
        ("GET", "/memory?site=%00", ANNA, 400),
        ("GET", "/admin/memory?user=%00", operator, 400),
        ("GET", "/admin/memory?user=anna&realm=%00", operator, 400),
        ("DELETE", "/admin/memory?user=anna&realm=key:shop&id=%00", operator, 400),
        ("GET", "/v1/memories/%00/", program, 404),
        ("GET", "/v1/memories/?user_id=%00", program, 400),
    ]:
        assert (await server.json(method, path, headers=headers))[0] == expected, path
    nul = "I love \x00 quince"
    kept = await keep(server, nul, metadata={"a": "\x00"})
    body = {"messages": [{"role": "user", "content": nul + " pie"}], "user_id": "anna"}
    assert (await server.json("POST", "/v3/memories/add/", json=body, headers=program))[0] == 200
    message = {"id": "m\x00", "name": "An\x00na", "role": "user", "content": f"Remember that {nul} jam"}
    scopes = {"agent": "clown"}
    body = {"messages": [message], "conversation_id": "c1", "scopes": scopes}
    for new in (1, 0):
        status, told = await server.json("POST", "/context", json=body, headers=ANNA)
        assert (status, told["stored"]) == (200, new)
    body["scopes"] = {"agent": "clo\x00wn"}
    status, told = await server.json("POST", "/context", json=body, headers=ANNA)
    assert (status, told["error"]["field"]) == (400, "scopes.agent")
    assert await texts(server) == ["I love quince", "I love quince jam", "I love quince pie"]
    _, shown = await server.json("GET", f"/memory/{kept['memory_id']}", headers=ANNA)
    assert shown["metadata"] == {"a": "\x00"}


# ---------------------------------------------------------------- told again


@pytest.mark.both_databases
async def test_what_is_told_again_offers_no_undo_that_takes_out_what_was_told_before(serve: Serve) -> None:
    server = await kitchen(serve)
    first = (await ask(server, "Remember that I love coriander")).one("remember")
    assert first["memory_id"]
    again = (await ask(server, "Remember that I love coriander")).one("remember")
    assert (again["memory_id"], again.get("confirm")) == (None, None)
    assert "already" in again["message"]
    assert await texts(server) == ["I love coriander"]


@pytest.mark.both_databases
async def test_a_sensitive_fact_that_was_agreed_to_is_not_asked_about_again(serve: Serve) -> None:
    server = await kitchen(serve)
    asked = (await ask(server, "Remember that I have diabetes")).one("remember")
    await server.json("POST", "/memory/confirm", json={"token": asked["confirm"]}, headers=ANNA)
    again = (await ask(server, "Remember that I have diabetes")).one("remember")
    assert (again["memory_id"], again.get("confirm")) == (None, None)
    asked_of_bo = (await ask(server, "Remember that I have diabetes", BO)).one("remember")
    assert asked_of_bo["confirm"]


@pytest.mark.both_databases
async def test_forgetting_a_fact_takes_out_the_turn_that_told_it_again(serve: Serve) -> None:
    server = await kitchen(serve)
    first = (await ask(server, "Remember that I love coriander", conversation_id="c1")).one("remember")
    await ask(server, "Remember that I love coriander", conversation_id="c2")
    await server.json("DELETE", f"/memory/{first['memory_id']}", headers=ANNA)
    for conversation in ("c1", "c2"):
        _, kept = await server.json("GET", f"/conversations/{conversation}", headers=ANNA)
        assert kept["turns"] == []


# ---------------------------------------------------------------- the operator


@pytest.mark.both_databases
async def test_operator_erases_who_has_conversations_alone(serve: Serve) -> None:
    server = await kitchen(serve)
    operator = {"Authorization": f"Bearer {ADMIN}"}
    await ask(server, "stew", conversation_id="c1")
    await ask(server, "stew", BO, conversation_id="c1")
    await keep(server, "I love figs", user("bo", OTHER))
    status, refused = await server.json("DELETE", "/admin/memory?user=bo&all=true", headers=operator)
    assert (status, refused["error"]["field"]) == (400, "realm")
    status, done = await server.json("DELETE", "/admin/memory?user=anna&all=true", headers=operator)
    assert (status, done["erased"]["conversations"]["turns"]) == (200, 1)
    for name in ("anna", "nna", "%", "_nna"):
        path = f"/admin/memory?user={name.replace('%', '%25')}&all=true"
        assert (await server.json("DELETE", path, headers=operator))[0] == 404
    status, _ = await server.json("DELETE", "/admin/memory?user=bo&realm=key:shop&all=true", headers=operator)
    assert status == 200
    assert (await server.json("GET", "/conversations/c1", headers=BO))[0] == 404
    assert await texts(server, user("bo", OTHER)) == ["I love figs"]
