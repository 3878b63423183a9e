"""`/feedback`: taken on answers that were given, changed, withdrawn, read by operators, erased."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.database import Database
from core.errors import NotFound
from core.feedback import KEEP_S, MAX_CHANGES, Feedback, Judgement
from core.messages import Item, Results
from core.query import Identity, Query
from server.keys import DOCUMENTS, FEEDBACK
from tests.conftest import ADMIN, KITCHEN, Serve, Served

OPERATOR = {"Authorization": f"Bearer {ADMIN}"}
KEYS = [
    {"key": "app-one-key", "roles": ["read", "act-as"], "name": "one"},
    {"key": "app-two-key", "roles": ["read", "act-as"], "name": "two"},
]


def acting(key: str, user: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}", "X-User-Id": user}


async def give(server: Served, headers: dict[str, str] | None = None, **body: Any) -> tuple[int, Any]:
    return await server.json("POST", "/feedback", json=body, headers=headers or {})


async def kept(server: Served) -> list[dict[str, Any]]:
    status, body = await server.json("GET", "/feedback", headers=OPERATOR)
    assert status == 200
    found: list[dict[str, Any]] = body["feedback"]
    return found


async def asked(server: Served, headers: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    frames = await server.ask("beef stew", headers=headers, **more)
    return {"query_id": frames.all[0]["query_id"], "document_id": frames.final[0]["document_id"]}


@pytest.mark.both_databases
async def test_feedback_on_an_answer_and_on_an_item_is_kept_for_the_operator(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    answer = await asked(server, site="kitchen")
    status, body = await give(server, query_id=answer["query_id"], rating="up")
    assert (status, body) == (
        200,
        {"query_id": answer["query_id"], "document_id": None, "rating": "up"},
    )
    await give(server, **answer, rating="down", reasons=["wrong", "wrong"], comment=" Not beef. ")
    item, whole = await kept(server)
    assert (item["site"], item["document_id"]) == ("kitchen", answer["document_id"])
    assert (item["rating"], item["reasons"], item["comment"]) == ("down", ["wrong"], "Not beef.")
    assert (whole["document_id"], whole["rating"], whole["question"]) == ("", "up", "beef stew")
    assert whole["sites"] == ["kitchen"]


@pytest.mark.both_databases
async def test_what_is_said_again_replaces_and_none_withdraws(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    answer = await asked(server)
    await give(server, **answer, rating="up")
    await give(server, **answer, rating="down")
    assert [one["rating"] for one in await kept(server)] == ["down"]
    status, body = await give(server, **answer, rating="none")
    assert (status, body["rating"]) == (200, "none")
    assert await kept(server) == []


async def test_only_answers_given_to_the_same_caller_count(serve: Serve) -> None:
    server = await serve(auth={"api_keys": KEYS})
    await server.load("kitchen", KITCHEN)
    ada = acting("app-one-key", "ada")
    answer = await asked(server, headers=ada)
    for other in (acting("app-one-key", "bob"), acting("app-two-key", "ada"), {}, OPERATOR):
        status, _ = await give(server, other, **answer, rating="up")
        assert status == 404
    assert (await give(server, {}, query_id="never-asked", rating="up"))[0] == 404
    assert (await give(server, ada, **answer, rating="up"))[0] == 200


async def test_what_was_said_of_an_answer_to_nobody_known_is_not_anothers_to_change(serve: Serve) -> None:
    server = await serve(auth={"api_keys": KEYS, "anonymous": "ask"})
    await server.app[DOCUMENTS].set_access("kitchen", "public")
    await server.load("kitchen", KITCHEN)
    ours = await asked(server)
    chosen = await asked(server, query_id="q-1")
    async with await server.browser() as browser:
        other = Served(server.url, browser, server.app, server.runner)
        for answer, changed in ((ours, 200), (chosen, 403)):
            assert (await give(server, **answer, rating="up"))[0] == 200
            for rating in ("none", "down"):
                assert (await give(other, **answer, rating=rating))[0] == changed
        assert {one["query_id"]: one["rating"] for one in await kept(server)} == {
            ours["query_id"]: "down",
            "q-1": "up",
        }
        # Who is known rates their own answers only; a visitor that has become one keeps those of before.
        for person in (acting("app-one-key", "ada"), {"Authorization": "Bearer app-two-key"}, OPERATOR):
            for answer in (ours, chosen):
                assert (await give(other, person, **answer, rating="up"))[0] == 404
        page = {"Origin": server.url, "Sec-Fetch-Site": "same-origin"}
        assert (await other.json("POST", "/conversations", json={}, headers=page))[0] == 201
        assert (await give(other, page, **chosen, rating="up"))[0] == 404
        assert (await give(other, page, **ours, rating="up"))[0] == 200


async def test_only_items_that_were_shown_count(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    await server.load("other", KITCHEN)
    answer = await asked(server, max_results=1, site="kitchen")
    status, body = await give(server, query_id=answer["query_id"], document_id="else", rating="up")
    assert (status, body["error"]["field"]) == (404, "document_id")
    status, _ = await give(server, **answer, site="other", rating="up")
    assert status == 404


async def test_the_same_id_in_two_sites_needs_the_site_named(serve: Serve) -> None:
    server = await serve()
    item = Item("https://a.example/", "A", "one", 80.0, "Fits.", {}, "FAST_TRACK", "same")
    answered = server.app[FEEDBACK].begin("anonymous:0::", Query("stew", "q-1", "c-1", all_sites=True))
    answered.see(Results((item, replace(item, site="two"))))
    status, body = await give(server, query_id="q-1", document_id="same", rating="up")
    assert (status, body["error"]["field"]) == (400, "site")
    status, _ = await give(server, query_id="q-1", document_id="same", site="two", rating="up")
    assert status == 200
    assert [one["site"] for one in await kept(server)] == ["two"]


async def test_an_answer_of_long_ago_takes_no_feedback(tmp_path: Path) -> None:
    now = 1000.0
    database = await Database.open(None, tmp_path)
    feedback = Feedback(database, anonymous="nobody", clock=lambda: now)
    feedback.begin("nobody", Query("stew", "q-1", "c-1"))
    said = Judgement("q-1", "", "", "up")
    now += KEEP_S
    await feedback.give("nobody", None, said)
    now += 1
    with pytest.raises(NotFound):
        await feedback.give("nobody", None, said)
    assert len(await feedback.listed(before=None, limit=10)) == 1
    await database.close()


async def test_answers_as_one_object_count_too(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    await server.json("GET", "/ask?query=stew&streaming=false&query_id=q-json")
    assert (await give(server, query_id="q-json", rating="up"))[0] == 200


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"query_id": ""}, "query_id"),
    ({"query_id": 7}, "query_id"),
    ({"query_id": "x" * 129}, "query_id"),
    ({"rating": "great"}, "rating"),
    ({"rating": None}, "rating"),
    ({"rating": ["up"]}, "rating"),
    ({"document_id": "../x"}, "document_id"),
    ({"site": "No Site"}, "site"),
    ({"comment": "x" * 2001}, "comment"),
    ({"reasons": "wrong"}, "reasons"),
    ({"reasons": ["x"] * 11}, "reasons"),
    ({"reasons": ["x" * 101]}, "reasons"),
]


async def test_what_is_wrong_is_named(serve: Serve) -> None:
    server = await serve()
    for wrong, field in WRONG:
        status, body = await give(server, **{"query_id": "q", "rating": "up", **wrong})
        assert (status, body["error"]["field"]) == (400, field), wrong


async def test_one_answer_takes_only_so_many_changes(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    answer = await asked(server)
    statuses = [(await give(server, **answer, rating="up"))[0] for _ in range(MAX_CHANGES + 1)]
    assert statuses == [200] * MAX_CHANGES + [429]


async def test_a_question_that_was_to_be_kept_nowhere_is_not_kept_here(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    answer = await asked(server, remember=False)
    await give(server, **answer, rating="up")
    (one,) = await kept(server)
    assert one["question"] == ""


@pytest.mark.both_databases
async def test_a_persons_feedback_is_erased_and_no_one_elses(serve: Serve) -> None:
    server = await serve(auth={"api_keys": KEYS})
    await server.load("kitchen", KITCHEN)
    people = [acting("app-one-key", "ada"), acting("app-one-key", "bob")]
    answers = [await asked(server, headers=person) for person in people]
    for person, answer in zip(people, answers, strict=True):
        await give(server, person, **answer, rating="up")
    feedback = server.app[FEEDBACK]
    assert await feedback.erase(Identity("key:one", "ada")) == 1
    assert [one["query_id"] for one in await kept(server)] == [answers[1]["query_id"]]
    assert (await give(server, people[0], **answers[0], rating="up"))[0] == 404
    assert await feedback.erase(Identity("key:one", "ada")) == 0


@pytest.mark.both_databases
async def test_operators_read_it_page_by_page_and_nobody_else_does(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    ids = []
    for _ in range(3):
        answer = await asked(server)
        await give(server, query_id=answer["query_id"], rating="up")
        ids.append(answer["query_id"])
    assert (await server.json("GET", "/feedback"))[0] == 401
    read: list[str] = []
    cursor = ""
    while True:
        _, page = await server.json("GET", f"/feedback?limit=2{cursor}", headers=OPERATOR)
        read += [one["query_id"] for one in page["feedback"]]
        if page["cursor"] is None:
            break
        cursor = f"&cursor={page['cursor']}"
    assert read == ids[::-1]


async def test_another_sites_page_cannot_use_the_visitors_cookie(serve: Serve) -> None:
    server = await serve()
    await server.load("kitchen", KITCHEN)
    ours = {"Origin": server.url, "Sec-Fetch-Site": "same-origin"}
    status, _ = await server.json("POST", "/conversations", json={}, headers=ours)
    assert status == 201
    answer = await asked(server, headers=ours)
    theirs = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    assert (await give(server, theirs, **answer, rating="up"))[0] == 403
    assert (await give(server, ours, **answer, rating="up"))[0] == 200
