"""Mem0's wire: its own client, and the requests of Semantic Kernel's provider, against our server."""

from __future__ import annotations

import asyncio
import os
import subprocess
import venv
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from tests.conftest import ADMIN, Serve, Served
from tests.fakes.openai_server import ModelRequest, ScriptedModel

KEY = "a-key-of-the-tests-1"
OTHER = "a-key-of-the-tests-2"
READER = "a-key-of-the-tests-3"
AUTH = {
    "api_keys": [
        {"key": KEY, "name": "shop", "roles": ["read", "act-as"]},
        {"key": OTHER, "name": "bank", "roles": ["read", "act-as"]},
        {"key": READER, "name": "reader", "roles": ["read"]},
    ]
}


def token(key: str = KEY) -> dict[str, str]:
    return {"Authorization": f"Token {key}"}


async def call(server: Served, method: str, path: str, body: Any = None, key: str = KEY) -> tuple[int, Any]:
    return await server.json(method, path, json=body, headers=token(key))


async def add(server: Served, text: str, key: str = KEY, **ids: Any) -> str:
    body = {"messages": [{"role": "user", "content": text}], **ids}
    status, answer = await call(server, "POST", "/v3/memories/add/", body, key)
    assert status == 200, answer
    return str(answer["results"][0]["id"])


async def texts(server: Served, key: str = KEY, **ids: Any) -> list[str]:
    status, answer = await call(server, "POST", "/v3/memories/", {"filters": ids}, key)
    assert status == 200, answer
    return sorted(one["memory"] for one in answer["results"])


@pytest.fixture
async def server(serve: Serve) -> Served:
    return await serve(auth=AUTH)


@pytest.fixture(scope="module")
def mem0_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of its own for the official client: it asks for an older protobuf than ours."""
    folder = tmp_path_factory.mktemp("mem0")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "mem0ai==2.2.1"], check=True)
    return python


@pytest.mark.slow
async def test_the_official_client_works_unchanged(
    server: Served, mem0_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEM0_DIR", str(tmp_path / "mem0"))
    monkeypatch.setenv("MEM0_TELEMETRY", "False")
    script = Path(__file__).with_name("mem0_client_script.py")
    # In a process of its own: the client prints, warns, and keeps threads.
    process = await asyncio.create_subprocess_exec(
        *(str(mem0_python), str(script), server.url, KEY, OTHER),
        env=dict(os.environ),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()
    assert out.decode().rstrip().endswith("all done")


# What Semantic Kernel's Mem0 client sends (field by field, nulls left out, one message a request).
SCOPED = {"app_id": "support", "agent_id": "agent1", "run_id": "thread1", "user_id": "anna"}


async def test_semantic_kernels_requests_work(server: Served) -> None:
    for role, content in [
        ("system", "You are a helpful assistant."),
        ("user", "My name is Caoimhe"),
        ("assistant", "Nice to meet you, Caoimhe, have some tips"),
    ]:
        body = {**SCOPED, "messages": [{"content": content, "role": role}]}
        status, answer = await call(server, "POST", "/v1/memories/", body)
        assert status == 200
        assert isinstance(answer, list)
    status, found = await call(server, "POST", "/v1/memories/search/", {**SCOPED, "query": "what is my name"})
    assert status == 200
    assert [one["memory"] for one in found] == ["My name is Caoimhe"]
    elsewhere = {**SCOPED, "agent_id": "agent2", "query": "what is my name"}
    assert await call(server, "POST", "/v1/memories/search/", elsewhere) == (200, [])
    query = "&".join(f"{name}={value}" for name, value in SCOPED.items())
    status, _ = await call(server, "DELETE", f"/v1/memories/?{query}")
    assert status == 200
    assert await call(server, "POST", "/v1/memories/search/", {**SCOPED, "query": "my name"}) == (200, [])


async def test_clearing_one_thread_leaves_the_users_other_memories(server: Served) -> None:
    await add(server, "I live in Genoa", user_id="anna")
    await add(server, "I am in a hurry", user_id="anna", run_id="t1")
    await add(server, "I have time", user_id="anna", run_id="t2")
    await call(server, "DELETE", "/v1/memories/?user_id=anna&run_id=t1")
    assert await texts(server, user_id="anna") == ["I have time", "I live in Genoa"]


@pytest.mark.parametrize(
    "bad", ["", " ", "*", None, 1.5, ["anna"], {"in": []}, {"ne": "anna"}, {"contains": ""}]
)
async def test_an_id_that_is_none_is_refused_and_never_means_all(server: Served, bad: Any) -> None:
    await add(server, "I live in Genoa", user_id="anna")
    message = [{"role": "user", "content": "x y"}]
    bodies = [
        ("POST", "/v3/memories/add/", {"messages": message, "user_id": bad}),
        ("POST", "/v1/memories/", {"messages": message, "user_id": bad}),
        ("POST", "/v3/memories/search/", {"query": "Genoa", "filters": {"user_id": bad}}),
        ("POST", "/v3/memories/search/", {"query": "Genoa", "filters": {"AND": [{"user_id": bad}]}}),
        ("POST", "/v1/memories/search/", {"query": "Genoa", "user_id": bad}),
        ("POST", "/v3/memories/", {"filters": {"user_id": bad}}),
    ]
    for method, path, body in bodies:
        status, answer = await call(server, method, path, body)
        assert (status, answer["error"]["code"]) == (400, "bad_request"), (path, answer)
    assert await texts(server, user_id="anna") == ["I live in Genoa"]


@pytest.mark.parametrize(
    ("method", "path"),
    [("DELETE", "/v1/memories/"), ("GET", "/v1/memories/"), ("GET", "/v1/memories/?page=1")],
)
@pytest.mark.parametrize("second", ["bo", "anna"])
async def test_an_id_that_is_given_twice_is_refused(
    server: Served, method: str, path: str, second: str
) -> None:
    await add(server, "I live in Genoa", user_id="anna")
    twice = f"{path}{'&' if '?' in path else '?'}user_id=anna&user_id={second}"
    status, told = await call(server, method, twice)
    assert (status, told["error"]["field"]) == (400, "user_id")
    status, kept = await call(server, "GET", "/v1/memories/?user_id=anna")
    assert [one["memory"] for one in kept] == ["I live in Genoa"]


async def test_no_id_at_all_is_refused(server: Served) -> None:
    await add(server, "I live in Genoa", user_id="anna")
    message = [{"role": "user", "content": "x y"}]
    for method, path, body in [
        ("POST", "/v3/memories/add/", {"messages": message}),
        ("POST", "/v3/memories/search/", {"query": "Genoa"}),
        ("POST", "/v3/memories/search/", {"query": "Genoa", "filters": {}}),
        ("POST", "/v3/memories/search/", {"query": "Genoa", "filters": {"OR": [{"user_id": "a"}, {}]}}),
        ("POST", "/v3/memories/", {}),
        ("GET", "/v1/memories/", None),
        ("DELETE", "/v1/memories/", None),
        ("DELETE", "/v1/memories/?user_id=", None),
        ("DELETE", "/v1/memories/?user_id=*", None),
        ("DELETE", "/v1/memories/?user_id=anna&run_id=", None),
        ("DELETE", "/v2/entities/user/*/", None),
        ("DELETE", "/v2/entities/galaxy/x/", None),
    ]:
        status, answer = await call(server, method, path, body)
        assert status == 400, (path, body, answer)
    assert await texts(server, user_id="anna") == ["I live in Genoa"]


async def test_a_filter_that_is_not_understood_is_refused(server: Served) -> None:
    await add(server, "I live in Genoa", user_id="anna")
    for filters in [
        {"user_id": "anna", "created_at": {"gte": "2026-01-01"}},
        {"NOT": [{"user_id": "bo"}]},
        {"AND": []},
        {"AND": [{"user_id": "anna"}, {"user_id": "bo"}]},
        "anna",
    ]:
        status, _ = await call(server, "POST", "/v3/memories/search/", {"query": "Genoa", "filters": filters})
        assert status == 400, filters


async def test_ids_are_anded_and_alternatives_joined(server: Served) -> None:
    await add(server, "I live in Genoa", user_id="anna", agent_id="a1")
    await add(server, "I live in Turin", user_id="bo", agent_id="a1")
    both = {"AND": [{"user_id": "anna"}, {"agent_id": "a1"}]}
    assert await texts(server, **both) == ["I live in Genoa"]
    assert await texts(server, agent_id="a1") == ["I live in Genoa", "I live in Turin"]
    assert await texts(server, user_id="anna") == ["I live in Genoa"]
    assert await texts(server, AND=[{"user_id": "anna"}, {"agent_id": "a2"}]) == []
    assert await texts(server, OR=[{"user_id": "anna"}, {"user_id": "bo"}]) == [
        "I live in Genoa",
        "I live in Turin",
    ]
    assert await texts(server, user_id={"in": ["bo", "cy"]}) == ["I live in Turin"]


@pytest.mark.parametrize("key", [OTHER, ADMIN])
async def test_another_keys_users_are_others(server: Served, key: str) -> None:
    memory_id = await add(server, "I live in Genoa", user_id="anna")
    assert await texts(server, key, user_id="anna") == []
    for method, path, body in [
        ("GET", f"/v1/memories/{memory_id}/", None),
        ("PUT", f"/v1/memories/{memory_id}/", {"text": "mine"}),
        ("DELETE", f"/v1/memories/{memory_id}/", None),
        ("GET", f"/v1/memories/{memory_id}/history/", None),
        ("PUT", "/v1/batch/", {"memories": [{"memory_id": memory_id, "text": "mine"}]}),
        ("DELETE", "/v1/batch/", {"memories": [{"memory_id": memory_id}]}),
    ]:
        assert (await call(server, method, path, body, key))[0] == 404, path
    assert (await call(server, "GET", "/v1/entities/", None, key))[1]["results"] == []
    await call(server, "DELETE", "/v1/memories/?user_id=anna", None, key)
    assert await texts(server, user_id="anna") == ["I live in Genoa"]


async def test_ids_count_only_with_the_role_for_it(server: Served) -> None:
    memory_id = await add(server, "I live in Genoa", user_id="anna")
    search = {"query": "Genoa", "filters": {"user_id": "anna"}}
    assert (await call(server, "POST", "/v3/memories/search/", search, READER))[0] == 403
    assert (await call(server, "GET", f"/v1/memories/{memory_id}/", None, READER))[0] == 403
    assert (await server.json("POST", "/v3/memories/search/", json=search))[0] == 403
    assert (await call(server, "GET", "/v1/ping/", None, "no-key-of-the-tests"))[0] == 401


async def test_metadata_is_kept_and_owns_nothing(server: Served) -> None:
    memory_id = await add(server, "I live in Genoa", user_id="anna", metadata={"category": "home"})
    await add(server, "My oven is small", user_id="anna")
    path = f"/v1/memories/{memory_id}/"
    assert (await call(server, "GET", path))[1]["metadata"] == {"category": "home"}
    status, _ = await call(server, "PUT", path, {"metadata": {"user_id": "bo"}})
    assert status == 400
    assert (await call(server, "GET", path))[1]["user_id"] == "anna"
    assert await texts(server, user_id="anna", metadata={"category": "home"}) == ["I live in Genoa"]


async def test_verbatim_storing_keeps_every_speakers_words_but_the_systems(server: Served) -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "I live in Genoa"},
        {"role": "assistant", "content": "Genoa has a large port"},
    ]
    body = {"messages": messages, "user_id": "anna", "infer": False}
    await call(server, "POST", "/v3/memories/add/", body)
    assert await texts(server, user_id="anna") == ["Genoa has a large port", "I live in Genoa"]


async def test_with_a_model_only_what_the_user_said_of_themselves_is_stored(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await serve(auth=AUTH, model=model, memory={"mode": "off"})
    facts = [
        {"text": "Lives in Genoa", "kind": "fact"},
        {"text": "Should try the port's museum", "kind": "fact"},
    ]

    def answer(request: ModelRequest) -> Any:
        if request.schema_name == "MemoryExtractionPrompt":
            return {"facts": facts}
        return {"relation": "adds", "memory_id": ""}

    model.answer = answer
    messages = [
        {"role": "user", "content": "hello, I live in Genoa"},
        {"role": "assistant", "content": "You should try the port's museum"},
    ]
    status, told = await call(server, "POST", "/v3/memories/add/", {"messages": messages, "user_id": "anna"})
    assert status == 200
    assert [(one["memory"], one["event"]) for one in told["results"]] == [("Lives in Genoa", "ADD")]
    prompts = [r.prompt for r in model.requests if r.schema_name == "MemoryExtractionPrompt"]
    assert "museum" not in prompts[0]


async def test_lists_have_pages(server: Served) -> None:
    for n in range(5):
        await add(server, f"I own boat number {n}", user_id="anna")
    path = "/v3/memories/?page=2&page_size=2"
    _, page = await call(server, "POST", path, {"filters": {"user_id": "anna"}})
    assert (page["count"], len(page["results"])) == (5, 2)
    assert page["next"].endswith("page=3&page_size=2")
    assert page["previous"].endswith("page=1&page_size=2")
    status, listed = await call(server, "GET", "/v1/memories/?user_id=anna")
    assert (status, len(listed)) == (200, 5)


async def test_facts_of_this_wire_are_the_persons_own_on_ours(server: Served) -> None:
    await add(server, "I live in Genoa", user_id="anna")
    _, told = await server.json("GET", "/memory", headers={**token(), "X-User-Id": "anna"})
    assert [one["text"] for one in told["memories"]] == ["I live in Genoa"]


# ---------------------------------------------------------------- a request that names its user by header


def speaking(name: str) -> dict[str, str]:
    return {**token(), "X-User-Id": name}


# Every route, as a request for bob that is after anna's memory: its body, and the status it gets.
MESSAGE = [{"role": "user", "content": "mine now"}]
AFTER_ANNAS: list[tuple[str, str, Any, int]] = [
    ("GET", "/v1/ping/", None, 200),
    ("POST", "/v3/memories/add/", {"messages": MESSAGE, "user_id": "anna"}, 403),
    ("POST", "/v1/memories/", {"messages": MESSAGE, "user_id": "anna"}, 403),
    ("POST", "/v3/memories/search/", {"query": "Genoa", "filters": {"user_id": "anna"}}, 403),
    ("POST", "/v1/memories/search/", {"query": "Genoa", "user_id": "anna"}, 403),
    ("POST", "/v2/memories/search/", {"query": "Genoa", "filters": {"OR": [{"user_id": "anna"}]}}, 403),
    ("POST", "/v3/memories/", {"filters": {"user_id": {"in": ["bob", "anna"]}}}, 403),
    ("POST", "/v2/memories/", {"filters": {"AND": [{"user_id": "anna"}, {"run_id": "t1"}]}}, 403),
    ("GET", "/v1/memories/?user_id=anna", None, 403),
    ("GET", "/v1/memories/{memory_id}/", None, 404),
    ("GET", "/v1/memories/{memory_id}/history/", None, 404),
    ("GET", "/v1/entities/", None, 200),
    ("PUT", "/v1/memories/{memory_id}/", {"text": "mine now"}, 404),
    ("DELETE", "/v1/memories/{memory_id}/", None, 404),
    ("DELETE", "/v1/memories/?user_id=anna", None, 403),
    ("DELETE", "/v2/entities/user/anna/", None, 403),
    ("DELETE", "/v2/entities/{type}/{id}/", None, 200),
    ("PUT", "/v1/batch/", {"memories": [{"memory_id": "{memory_id}", "text": "mine now"}]}, 404),
    ("DELETE", "/v1/batch/", {"memories": [{"memory_id": "{memory_id}"}]}, 404),
]


async def test_a_request_for_one_user_reaches_no_memory_of_another_on_any_route(server: Served) -> None:
    memory_id = await add(server, "I live in Genoa", user_id="anna", app_id="docs", run_id="t1")
    served = {
        (route.method, route.resource.canonical)
        for route in server.app.router.routes()
        if route.resource and route.resource.canonical.startswith(("/v1/", "/v2/", "/v3/"))
    }
    asked = set()
    for method, path, body, expected in AFTER_ANNAS:
        canonical = path.split("?")[0].replace("/user/anna/", "/{type}/{id}/")
        asked.add((method, canonical))
        path = path.format(memory_id=memory_id, type="app", id="docs")
        if body and "memories" in body:
            body = {"memories": [{**one, "memory_id": memory_id} for one in body["memories"]]}
        status, answer = await server.json(method, path, json=body, headers=speaking("bob"))
        assert status == expected, (method, path, answer)
        assert "Genoa" not in str(answer)
        assert "anna" not in str(answer)
    assert asked >= {one for one in served if one[0] != "HEAD"}
    assert await texts(server, user_id="anna") == ["I live in Genoa"]
    assert await texts(server, user_id="bob") == []
    # The user's own request, and the program that names nobody, reach it.
    for headers in (speaking("anna"), token()):
        status, one = await server.json("GET", f"/v1/memories/{memory_id}/", headers=headers)
        assert (status, one["memory"]) == (200, "I live in Genoa")


async def test_other_ids_of_a_request_for_one_user_are_that_users_alone(server: Served) -> None:
    await add(server, "I live in Genoa", user_id="anna", app_id="docs", run_id="t1")
    await add(server, "I live in Turin", user_id="bob", app_id="docs", run_id="t1")
    bob = speaking("bob")
    for ids in ({"app_id": "docs"}, {"run_id": "t1"}, {"user_id": "bob"}, {"user_id": " bob "}):
        _, page = await server.json("POST", "/v3/memories/", json={"filters": ids}, headers=bob)
        assert [one["memory"] for one in page["results"]] == ["I live in Turin"], ids
    added = {"messages": [{"role": "user", "content": "I own a boat"}], "app_id": "docs"}
    assert (await server.json("POST", "/v3/memories/add/", json=added, headers=bob))[0] == 200
    assert await texts(server, user_id="bob") == ["I live in Turin", "I own a boat"]
    _, entities = await server.json("GET", "/v1/entities/", headers=bob)
    assert {(one["name"], one["total_memories"]) for one in entities["results"]} == {
        ("bob", 2),
        ("docs", 2),
        ("t1", 1),
    }
    assert (await server.json("DELETE", "/v1/memories/", headers=bob))[0] == 400
    assert (await server.json("DELETE", "/v2/entities/app/docs/", headers=bob))[0] == 200
    assert await texts(server, app_id="docs") == ["I live in Genoa"]


# ---------------------------------------------------------------- what clients send beside plain sentences


async def test_a_message_without_words_is_no_error_and_nothing_to_store(server: Served) -> None:
    for n, text in enumerate(["👍", "?", ":)", "...", "  ", None]):
        for role, infer in [("user", True), ("user", False), ("assistant", False)]:
            silent = {"content": text, "role": role}
            body = {"user_id": f"u{n}{role}{infer}", "messages": [silent], "infer": infer}
            assert await call(server, "POST", "/v1/memories/", body) == (200, []), text
            body["messages"] = [
                {"role": "user", "content": "My oven is small"},
                silent,
                {"role": "user", "content": "I live in Genoa"},
            ]
            status, added = await call(server, "POST", "/v1/memories/", body)
            assert (status, [one["memory"] for one in added]) == (
                200,
                ["My oven is small", "I live in Genoa"],
            )


async def test_a_message_without_words_asks_no_model(serve: Serve, model: ScriptedModel) -> None:
    server = await serve(auth=AUTH, model=model)
    body = {**SCOPED, "messages": [{"content": "👍", "role": "user"}]}
    assert await call(server, "POST", "/v1/memories/", body) == (200, [])
    assert model.requests == []


async def test_one_message_that_is_refused_leaves_nothing_of_the_others(server: Served) -> None:
    for bad, field in [
        ({"role": "user", "content": 5}, "messages[1].content"),
        ({"role": "user", "content": "word " * 4001}, "messages[1].content"),
        ("text", "messages[1]"),
    ]:
        body = {"messages": [{"role": "user", "content": "I live in Genoa"}, bad], "user_id": "anna"}
        status, told = await call(server, "POST", "/v3/memories/add/", body)
        assert (status, told["error"]["field"]) == (400, field)
        assert await texts(server, user_id="anna") == []


async def test_what_is_stored_as_it_is_is_stored_whole(server: Served) -> None:
    long = " ".join(f"I own boat number {n}." for n in range(800))
    memory_id = await add(server, long, user_id="anna", infer=False)
    assert await texts(server, user_id="anna") == [long]
    path = f"/v1/memories/{memory_id}/"
    status, changed = await call(server, "PUT", path, {"text": f"{long} All blue."})
    assert (status, changed["memory"]) == (200, f"{long} All blue.")
    status, told = await call(server, "PUT", path, {"text": "word " * 5000})
    assert (status, told["error"]["field"]) == (400, "text")


# ---------------------------------------------------------------- numbers, days and depths

MANY = "9" * 5000


REFUSED: list[tuple[str, str, Any, str]] = [
    ("GET", f"/v1/memories/?user_id=anna&limit={MANY}", None, "limit"),
    ("GET", "/v1/memories/?user_id=anna&limit=-1", None, "limit"),
    ("GET", "/v1/memories/?user_id=anna&limit=1_0", None, "limit"),
    ("GET", f"/v1/memories/?user_id=anna&page={MANY}", None, "page"),
    ("GET", "/v1/memories/?user_id=anna&page=0", None, "page"),
    ("GET", f"/v1/memories/?user_id=anna&page=1&page_size={MANY}", None, "page_size"),
    ("GET", f"/v1/memories/?user_id=anna&start_date={MANY}", None, "start_date"),
    ("GET", "/v1/memories/?user_id=anna&end_date=soon", None, "end_date"),
    ("GET", "/v1/memories/?user_id=anna&categories=food", None, "categories"),
    ("POST", f"/v3/memories/?page={MANY}", {"user_id": "anna"}, "page"),
    ("POST", "/v3/memories/", {"user_id": "anna", "categories": ["food"]}, "categories"),
    ("POST", "/v3/memories/", {"user_id": "anna", "start_date": 10**18}, "start_date"),
    ("POST", "/v3/memories/search/", {"user_id": "anna", "query": "x", "top_k": 10**18}, "top_k"),
    ("POST", "/v3/memories/search/", {"user_id": "anna", "query": "x", "top_k": 1.5}, "top_k"),
    ("POST", "/v3/memories/search/", {"user_id": "anna", "query": "x", "top_k": True}, "top_k"),
    ("POST", "/v3/memories/search/", {"user_id": "anna", "query": "x", "top_k": MANY}, "top_k"),
    ("POST", "/v3/memories/search/", {"user_id": "anna", "query": "x", "threshold": 1e300}, "threshold"),
    ("POST", "/v3/memories/search/", {"user_id": "anna", "query": "x", "threshold": "1"}, "threshold"),
    (
        "POST",
        "/v3/memories/search/",
        {"user_id": "anna", "query": "x", "categories": ["a"]},
        "categories",
    ),
    ("DELETE", "/v1/memories/?user_id=anna&start_date=2020-01-01", None, "start_date"),
    ("DELETE", "/v1/memories/?user_id=anna&metadata=x", None, "metadata"),
    ("DELETE", "/v1/memories/{memory_id}/?delete_linked=perhaps", None, "delete_linked"),
]


async def test_a_number_or_filter_that_is_none_is_refused_by_its_name(server: Served) -> None:
    memory_id = await add(server, "I live in Genoa", user_id="anna")
    for method, path, body, field in REFUSED:
        status, told = await call(server, method, path.format(memory_id=memory_id), body)
        assert (status, told["error"]["field"]) == (400, field), (path[:80], body)
    assert await texts(server, user_id="anna") == ["I live in Genoa"]


NO_VALUES: list[tuple[str, Any]] = [
    ("expiration_date", MANY),
    ("expiration_date", 20300101),
    ("expiration_date", "10000-01-01"),
    ("expiration_date", "2030-02-30"),
    ("expiration_date", "2001-01-01"),
    ("expiration_date", "0001-01-01"),
    ("timestamp", 10**18),
    ("timestamp", -1),
    ("timestamp", True),
    ("timestamp", MANY),
    ("timestamp", "0001-01-01T00:00:00+14:00"),
    ("metadata", ["a"]),
    ("infer", "no"),
]


async def test_a_day_or_moment_that_is_none_is_refused_when_adding_and_changing(server: Served) -> None:
    memory_id = await add(server, "I live in Genoa", user_id="anna")
    path = f"/v1/memories/{memory_id}/"
    before = await call(server, "GET", path)
    for name, value in NO_VALUES:
        body = {"messages": [{"role": "user", "content": "I own a boat"}], "user_id": "anna", name: value}
        status, told = await call(server, "POST", "/v3/memories/add/", body)
        assert (status, told["error"]["field"]) == (400, name), value
        if name != "infer":
            status, told = await call(server, "PUT", path, {"text": "I own a boat", name: value})
            assert (status, told["error"]["field"]) == (400, name), value
    assert await call(server, "GET", path) == before
    assert await texts(server, user_id="anna") == ["I live in Genoa"]


@pytest.mark.both_databases
async def test_the_last_day_there_is_is_a_day(serve: Serve) -> None:
    server = await serve(auth=AUTH)
    memory_id = await add(server, "I live in Genoa", user_id="anna", expiration_date="9999-12-31")
    path = f"/v1/memories/{memory_id}/"
    status, one = await call(server, "GET", path)
    assert (status, one["expiration_date"]) == (200, "9999-12-31")
    for day in ("2035-01-02", "9999-12-31"):
        status, one = await call(server, "PUT", path, {"expiration_date": day})
        assert (status, one["expiration_date"]) == (200, day)
    _, listed = await server.json("GET", "/memory", headers=speaking("anna"))
    assert [fact["text"] for fact in listed["memories"]] == ["I live in Genoa"]


def nested(levels: int, value: Any = 1) -> dict[str, Any]:
    for _ in range(levels):
        value = {"a": value}
    assert isinstance(value, dict)
    return value


async def test_metadata_that_is_too_deep_to_be_sent_is_not_stored(server: Served) -> None:
    message = [{"role": "user", "content": "I own a boat"}]
    memory_id = await add(server, "I live in Genoa", user_id="anna", agent_id="a1", metadata=nested(20))
    anna = speaking("anna")
    for metadata in (nested(21), nested(300), {"a": [[nested(250)]]}):
        for method, path, body in [
            ("POST", "/v3/memories/add/", {"messages": message, "user_id": "anna", "metadata": metadata}),
            ("PUT", f"/v1/memories/{memory_id}/", {"metadata": metadata}),
            ("PUT", "/v1/batch/", {"memories": [{"memory_id": memory_id, "metadata": metadata}]}),
            ("POST", "/memory", {"text": "I own a boat", "metadata": metadata}),
            ("PATCH", f"/memory/{memory_id}", {"metadata": metadata}),
        ]:
            headers = anna if path.startswith("/memory") else token()
            status, told = await server.json(method, path, json=body, headers=headers)
            assert (status, told["error"]["field"]) == (400, "metadata"), path
    for path in ("/memory", "/memory/export"):
        status, told = await server.json("GET", path, headers=anna)
        assert (status, [one["metadata"] for one in told["memories"]]) == (200, [nested(20)])
    assert await texts(server, agent_id="a1") == ["I live in Genoa"]


async def test_filters_that_are_too_deep_or_too_many_are_refused(server: Served) -> None:
    deep: dict[str, Any] = {"user_id": "anna"}
    for _ in range(300):
        deep = {"AND": [deep]}
    many = {"in": [f"u{n}" for n in range(20_000)]}
    for filters in (deep, {"user_id": many, "agent_id": many}, {"OR": [{"user_id": many}]}):
        status, told = await call(server, "POST", "/v3/memories/", {"filters": filters})
        assert (status, told["error"]["field"]) == (400, "filters")


# ---------------------------------------------------------------- what was given is taken into account


async def test_metadata_is_looked_for_in_all_memories(server: Served) -> None:
    for n in range(15):
        more = {"metadata": {"n": n}, "infer": False}
        await add(server, f"I cook pasta dish number {n} with sauce", user_id="anna", **more)
    for n in (0, 7, 14):
        body = {"query": "pasta dish sauce", "filters": {"user_id": "anna", "metadata": {"n": n}}, "top_k": 1}
        _, found = await call(server, "POST", "/v3/memories/search/", body)
        assert [one["metadata"]["n"] for one in found["results"]] == [n]


async def test_lists_and_searches_keep_to_the_days(server: Served) -> None:
    for year in (2021, 2022, 2023):
        at = f"{year}-05-06T07:08:09+00:00"
        await add(server, f"I bought a boat in {year}", user_id="anna", timestamp=at)
    days = {"start_date": "2022-05-06", "end_date": "2022-05-06"}
    query = {"query": "boat", "user_id": "anna"}
    for more, years in [
        (days, [2022]),
        ({"start_date": "2022-05-07"}, [2023]),
        ({"end_date": "2022-05-06T07:08:09Z"}, [2021, 2022]),
        ({"start_date": "2030-01-01", "end_date": "2031-01-01"}, []),
    ]:
        expected = [f"I bought a boat in {year}" for year in years]
        _, page = await call(server, "POST", "/v3/memories/?page_size=10", {"user_id": "anna", **more})
        assert (page["count"], sorted(one["memory"] for one in page["results"])) == (len(years), expected)
        _, found = await call(server, "POST", "/v1/memories/search/", {**query, **more})
        assert sorted(one["memory"] for one in found) == expected
        told = urlencode({"user_id": "anna", **more})
        _, listed = await call(server, "GET", f"/v1/memories/?{told}")
        assert sorted(one["memory"] for one in listed) == expected


async def test_a_list_can_be_followed_page_by_page(server: Served) -> None:
    for n in range(5):
        await add(server, f"I own boat number {n}", user_id="anna b&c", run_id="t1")
    found: list[str] = []
    path = f"/v1/memories/?{urlencode({'user_id': 'anna b&c', 'run_id': 't1', 'page': 1, 'page_size': 2})}"
    while path:
        status, page = await call(server, "GET", path)
        assert status == 200, page
        found += [one["memory"] for one in page["results"]]
        path = (page["next"] or "").removeprefix(server.url)
    assert sorted(found) == [f"I own boat number {n}" for n in range(5)]
    status, before = await call(server, "GET", page["previous"].removeprefix(server.url))
    assert (status, len(before["results"])) == (200, 2)


@pytest.mark.both_databases
async def test_a_batch_is_changed_as_a_whole_or_not_at_all(serve: Serve) -> None:
    server = await serve(auth=AUTH)
    one = await add(server, "My car is red", user_id="anna")
    two = await add(server, "My dog is brown", user_id="anna")
    three = await add(server, "My kite is long", user_id="anna")
    wrong: list[dict[str, Any]] = [
        {"memory_id": two, "text": "I own a boat", "metadata": {"user_id": "bo"}},
        {"memory_id": two, "text": "I own a boat", "expiration_date": "2001-01-01"},
        {"memory_id": two, "text": "?"},
        {"memory_id": two},
        {"memory_id": two, "text": "My kite is long"},
        {"memory_id": two, "text": "My car is blue"},
        {"memory_id": two, "text": "word " * 5000},
        {"memory_id": "nowhere", "text": "I own a boat"},
    ]
    for second in wrong:
        batch = [{"memory_id": one, "text": "My car is blue"}, second]
        status, _ = await call(server, "PUT", "/v1/batch/", {"memories": batch})
        assert status == (404 if second["memory_id"] == "nowhere" else 400), second
        assert await texts(server, user_id="anna") == ["My car is red", "My dog is brown", "My kite is long"]
    steps = (await call(server, "GET", f"/v1/memories/{one}/history/"))[1]
    assert [step["event"] for step in steps] == ["ADD"]
    batch = [{"memory_id": one, "text": "My car is blue"}, {"memory_id": two, "text": "My dog is black"}]
    batch.append({"memory_id": three, "metadata": {"n": 1}})
    assert (await call(server, "PUT", "/v1/batch/", {"memories": batch}))[0] == 200
    assert await texts(server, user_id="anna") == ["My car is blue", "My dog is black", "My kite is long"]
    query = {"query": "black dog", "user_id": "anna"}
    assert (await call(server, "POST", "/v1/memories/search/", query))[1][0]["id"] == two


@pytest.mark.both_databases
async def test_what_was_superseded_goes_with_the_memory_where_that_is_asked(serve: Serve) -> None:
    server = await serve(auth=AUTH)
    chain = [await add(server, f"I live in {town}", user_id="anna") for town in ("Genoa", "Turin", "Milan")]
    other = await add(server, "I live in Rome", user_id="bo")
    path = f"/v1/memories/{chain[-1]}/?delete_linked=true"
    assert (await call(server, "DELETE", path))[0] == 200
    for memory_id in chain:
        assert (await call(server, "GET", f"/v1/memories/{memory_id}/"))[0] == 404
        steps = (await call(server, "GET", f"/v1/memories/{memory_id}/history/"))[1]
        assert {step["old_memory"] for step in steps} | {step["new_memory"] for step in steps} == {None}
    assert (await call(server, "DELETE", path))[0] == 404
    assert (await call(server, "GET", f"/v1/memories/{other}/"))[0] == 200
    older = await add(server, "I live in Oslo", user_id="cy")
    newer = await add(server, "I live in Bergen", user_id="cy")
    assert (await call(server, "DELETE", f"/v1/memories/{newer}/"))[0] == 200
    assert (await call(server, "GET", f"/v1/memories/{older}/"))[0] == 200


async def test_deleting_every_entity_of_the_list_is_no_error(server: Served) -> None:
    await add(server, "I live in Rome", user_id="anna", agent_id="a/b", app_id="shop", run_id="r1")
    _, listed = await call(server, "GET", "/v1/entities/")
    counts = []
    for one in listed["results"]:
        path = f"/v2/entities/{one['type']}/{quote(one['name'], safe='')}/"
        status, told = await call(server, "DELETE", path)
        assert status == 200, path
        counts.append(told["deleted"])
    assert counts == [1, 0, 0, 0]
    assert (await call(server, "GET", "/v1/entities/"))[1]["results"] == []


async def test_an_expiration_of_null_clears_the_one_that_was_given(server: Served) -> None:
    usual = await add(server, "I own a boat", user_id="anna")
    memory_id = await add(server, "I live in Genoa", user_id="anna", expiration_date="2035-01-02")
    path = f"/v1/memories/{memory_id}/"
    lasting = (await call(server, "GET", f"/v1/memories/{usual}/"))[1]["expiration_date"]
    for change in ({"expiration_date": None}, {"text": "I live in Turin", "expiration_date": None}):
        await call(server, "PUT", path, {"expiration_date": "2035-01-02"})
        status, one = await call(server, "PUT", path, change)
        assert (status, one["expiration_date"]) == (200, lasting)
    assert one["memory"] == "I live in Turin"


async def test_a_timestamp_says_when_a_memory_was_made(server: Served) -> None:
    memory_id = await add(server, "I live in Genoa", user_id="anna", timestamp=1_600_000_000)
    path = f"/v1/memories/{memory_id}/"
    assert (await call(server, "GET", path))[1]["created_at"] == "2020-09-13T12:26:40+00:00"
    status, one = await call(server, "PUT", path, {"timestamp": "2021-01-01T00:00:00+00:00"})
    assert (status, one["created_at"]) == (200, "2021-01-01T00:00:00+00:00")
    assert one["memory"] == "I live in Genoa"
