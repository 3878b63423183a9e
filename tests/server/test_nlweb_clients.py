"""What clients written for NLWeb rely on: its chat page of August 2025, its JavaScript client, `curl`.

The reader below does what those do: a GET with everything in the query string, unnamed events, one `switch`
over `message_type`, items sorted by the client, and the connection closed at `complete`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest

from tests.conftest import KITCHEN, Serve, Served, recipe
from tests.events import EventReader
from tests.fakes.openai_server import ScriptedModel
from tests.fakes.sensible_model import SensibleModel

# Every field of a result that NLWeb's renderers look at.
RESULT_FIELDS = {"url", "name", "site", "siteUrl", "score", "description", "schema_object"}
# Message types that its page has a case for; what it does not know it skips.
KNOWN = {
    "api_version",
    "asking_sites",
    "ask_user",
    "complete",
    "compare_items",
    "decontextualized_query",
    "ensemble_result",
    "item_details",
    "nlws",
    "no_results",
    "remember",
    "result_batch",
    "site_is_irrelevant_to_query",
    "summary",
    "tool_selection",
}


@dataclass
class ChatPage:
    """The state that NLWeb's page builds up while it reads one answer."""

    url: str
    items: list[dict[str, Any]] = field(default_factory=list)
    heard: list[dict[str, Any]] = field(default_factory=list)
    query: str = ""
    interpreted_as: str = ""
    remembered: list[str] = field(default_factory=list)
    summary: str = ""
    asked_back: str = ""
    closed: bool = False

    async def ask(self, query: str, *, prev: list[str] | None = None, **more: str) -> ChatPage:
        """One question, as the page builds its address: the history is JSON in the query string."""
        self.query = query
        told = {"query": query, "prev": json.dumps(prev or []), "generate_mode": "list", **more}
        address = self.url + "/ask?" + "&".join(f"{name}={quote(value)}" for name, value in told.items())
        reader = EventReader()
        stream = {"Accept": "text/event-stream"}
        async with aiohttp.request("GET", address, headers=stream) as response:
            assert response.status == 200, await response.text()
            async for piece in response.content.iter_any():
                for event in reader.feed(piece):
                    assert event.name == "message"  # `onmessage` gets unnamed events only
                    assert not self.closed, "nothing follows `complete`"
                    self.hear(event.json)
        assert self.closed
        return self

    def hear(self, data: dict[str, Any]) -> None:
        self.heard.append(data)
        match data["message_type"]:
            case "result_batch":
                for item in data["results"]:
                    self.items = [one for one in self.items if one["url"] != item["url"]] + [item]
            case "decontextualized_query":
                self.interpreted_as = data["decontextualized_query"]
            case "remember":
                self.remembered.append(data["item_to_remember"])
            case "summary":
                self.summary = data["message"]
            case "ask_user":
                self.asked_back = data["message"]
            case "complete":
                self.closed = True

    @property
    def shown(self) -> list[str]:
        """Results come as they are known: the client sorts."""
        return [one["name"] for one in sorted(self.items, key=lambda item: -item["score"])]


async def kitchen(serve: Serve, model: ScriptedModel | None = None) -> Served:
    server = await serve(model=model)
    await server.load("kitchen", KITCHEN)
    return server


async def test_first_question_and_its_follow_up(serve: Serve, model: ScriptedModel) -> None:
    server = await kitchen(serve, model)
    model.answer = SensibleModel(
        rewrites={"a vegan one": "a vegan stew"}, scores={"Chickpea stew": 95, "Beef stew": 60}
    )
    first = await ChatPage(server.url).ask("stew", site="kitchen")
    assert first.shown[0] == "Chickpea stew"
    second = await ChatPage(server.url).ask(
        "a vegan one", prev=['salt, pepper "fine"', "stew"], site="kitchen"
    )
    assert second.interpreted_as == "a vegan stew"
    (rewriting,) = [r for r in model.requests if r.schema_name == "PrevQueryDecontextualizer"]
    assert "salt, pepper" in rewriting.prompt


async def test_order_by_score_on_the_client_is_the_final_order(serve: Serve, model: ScriptedModel) -> None:
    server = await kitchen(serve, model)
    scores = {"Tofu curry": 95, "Beef stew": 90, "Chickpea stew": 85, "Lemon tart": 80, "Minestrone": 75}
    model.answer = SensibleModel(scores=scores)
    page = await ChatPage(server.url).ask("stew with vegetables, tofu, lemon")
    names = {item["document_id"]: item["name"] for item in page.items}
    assert page.shown == [names[document_id] for document_id in page.heard[-1]["order"]]


async def test_every_result_has_the_fields_that_renderers_read(serve: Serve) -> None:
    server = await kitchen(serve)
    page = await ChatPage(server.url).ask("stew", site="kitchen")
    for item in page.items:
        assert set(item) >= RESULT_FIELDS
        assert item["siteUrl"] == item["site"] == "kitchen"
        assert isinstance(item["score"], int | float)
        assert item["schema_object"]["@type"] == "Recipe"


async def test_every_message_says_whose_it_is_and_the_page_knows_most(serve: Serve) -> None:
    server = await kitchen(serve)
    page = await ChatPage(server.url).ask("stew", query_id="q-9")
    assert {one["query_id"] for one in page.heard} == {"q-9"}
    assert {one["message_type"] for one in page.heard} <= KNOWN


async def test_question_to_all_sites_says_which(serve: Serve) -> None:
    server = await kitchen(serve)
    for site in ({}, {"site": "all"}):
        (told,) = [
            one
            for one in (await ChatPage(server.url).ask("stew", **site)).heard
            if one["message_type"] == "asking_sites"
        ]
        assert told["message"] == "Asking kitchen"


async def test_remember_names_what_the_page_keeps(serve: Serve) -> None:
    server = await kitchen(serve)
    page = await ChatPage(server.url).ask("Please remember that I am vegetarian")
    assert page.remembered == ["I am vegetarian"]


async def test_what_the_page_sends_beside_is_passed_over(serve: Serve) -> None:
    server = await kitchen(serve)
    more = {
        "item_to_remember": "is vegan, no nuts",
        "display_mode": "full",
        "model": "gpt-4.1-mini",
        "oauth_id": "somebody",
        "thread_id": "t",
        "db": "",
    }
    assert (await ChatPage(server.url).ask("stew", **more)).shown


@pytest.mark.parametrize("mode", ["none", "list"])
async def test_generate_mode_is_the_old_name_of_mode(serve: Serve, mode: str) -> None:
    server = await kitchen(serve)
    assert (await ChatPage(server.url).ask("stew", generate_mode=mode)).shown
    status, _ = await server.json("GET", "/ask?query=stew&generate_mode=poem")
    assert status == 400


async def test_history_with_commas_of_older_clients_is_split(serve: Serve, model: ScriptedModel) -> None:
    server = await kitchen(serve, model)
    model.answer = SensibleModel()
    async with server.session.get(f"{server.url}/ask?query=and+then&prev=soup,stew") as response:
        await response.read()
    (rewriting,) = [r for r in model.requests if r.schema_name == "PrevQueryDecontextualizer"]
    assert rewriting.prompt.find("soup") < rewriting.prompt.find("stew")
    assert "soup,stew" not in rewriting.prompt


async def test_not_streaming_is_nlwebs_object_with_results_always(serve: Serve) -> None:
    server = await serve(server={"headers": {"license": "CC BY 4.0"}})
    await server.load("kitchen", KITCHEN)
    for off in ("False", "false", "0"):
        status, answer = await server.json("GET", f"/ask?query=stew&site=kitchen&streaming={off}&query_id=q")
        assert status == 200
        assert set(answer["results"][0]) >= RESULT_FIELDS
        assert answer["license"]["message"] == "CC BY 4.0"
        assert answer["query_id"] == "q"
    _, nothing = await server.json("GET", "/ask?query=xyzzy&site=kitchen&streaming=false&min_score=100")
    assert nothing["results"] == []


async def test_headers_come_before_the_results(serve: Serve) -> None:
    server = await serve(server={"headers": {"license": "CC BY 4.0", "data_retention": "none"}})
    await server.load("kitchen", KITCHEN)
    kinds = [one["message_type"] for one in (await ChatPage(server.url).ask("stew", site="kitchen")).heard]
    assert kinds[:3] == ["api_version", "license", "data_retention"]
    assert kinds.index("result_batch") > 2


async def test_list_of_sites_has_the_hyphen(serve: Serve) -> None:
    server = await kitchen(serve)
    _, answer = await server.json("GET", "/sites?streaming=false")
    assert answer["message-type"] == "sites"
    assert answer["sites"] == ["kitchen"]


async def test_no_more_than_ten_results_are_final(serve: Serve, model: ScriptedModel) -> None:
    server = await serve(model=model)
    await server.load("k", [recipe(f"s{n}", f"Soup {n:02}", "A soup.") for n in range(40)])
    model.answer = SensibleModel(scores={f"Soup {n:02}": 60 + n for n in range(40)})
    page = await ChatPage(server.url).ask("soup", site="k")
    assert len(page.heard[-1]["order"]) == 10
    # A page that shows all it hears and keeps the best ten shows the same ones.
    best = {item["document_id"] for item in sorted(page.items, key=lambda item: -item["score"])[:10]}
    assert len(best & set(page.heard[-1]["order"])) == 10
