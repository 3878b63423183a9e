"""What clients written for NLWeb rely on: its chat page of August 2025, its JavaScript clients, `curl`.

The three readers below do what those do, step by step: a GET with everything in the query string, read by
`onmessage` only, one case for each `message_type` they know, the same redrawing, and the connection closed
at `complete`. docs/nlweb.md says which versions they are written after.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from abc import ABC, abstractmethod
from asyncio.subprocess import PIPE
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp
import pytest

from tests.conftest import KITCHEN, Serve, Served, recipe
from tests.events import EventReader, check_event
from tests.fakes.openai_server import Fail, ScriptedModel
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
    "intermediate_message",
    "item_details",
    "nlws",
    "no_results",
    "remember",
    "result_batch",
    "site_is_irrelevant_to_query",
    "summary",
    "tool_selection",
}


class Client(ABC):
    """What both do: open an EventSource, read it by `onmessage`, close it at `complete`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.heard: list[dict[str, Any]] = []
        self.closed = False

    async def read(self, parameters: dict[str, str]) -> None:
        address = f"{self.url}/ask?{urlencode(parameters, quote_via=quote)}"
        reader = EventReader()
        stream = {"Accept": "text/event-stream", "Cache-Control": "no-cache"}
        async with aiohttp.request("GET", address, headers=stream) as response:
            assert response.status == 200, await response.text()
            assert response.content_type == "text/event-stream"
            async for piece in response.content.iter_any():
                for event in reader.feed(piece):
                    assert event.name == "message"  # `onmessage` gets unnamed events only
                    assert not self.closed, "nothing follows `complete`"
                    check_event("legacy-2025", event)
                    self.heard.append(event.json)
                    self.hear(event.json)
                    self.closed = event.json["message_type"] == "complete"
        assert self.closed

    @abstractmethod
    def hear(self, data: dict[str, Any]) -> None: ...

    @property
    def kinds(self) -> list[str]:
        return [one["message_type"] for one in self.heard]


class ChatPage(Client):
    """One answer in the chat page: a text, and items that are drawn anew, best first, whenever one comes.

    What is drawn besides, as a menu is, is there until the next drawing.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.text = ""
        self.items: list[dict[str, Any]] = []
        self.drawn: tuple[str, list[str], Any] = ("", [], None)
        self.interpreted_as = ""
        self.remembered: list[str] = []

    async def ask(
        self,
        query: str,
        *,
        prev: list[str] | None = None,
        last_ans: list[dict[str, str]] | None = None,
        **more: str,
    ) -> ChatPage:
        """One question, as the page builds its address: lists are JSON, and left out while empty."""
        told = {"query": query, "generate_mode": "list", "display_mode": "full", "site": "all", **more}
        if prev:
            told["prev"] = json.dumps(prev)
        if last_ans:
            told["last_ans"] = json.dumps(last_ans)
        await self.read(told)
        return self

    def hear(self, data: dict[str, Any]) -> None:
        match data:
            case {"message_type": "result_batch", "results": results}:
                self.items += results
            case {"message_type": "nlws", "answer": answer, "items": items}:
                self.text += answer
                self.items += items
            case {"message_type": "item_details"}:
                self.items.append({**data, "description": data["details"]})
            case {"message_type": "ensemble_result", "result": {"recommendations": put_together}}:
                self.draw(put_together)
                return
            case {"message_type": "summary" | "intermediate_message" | "ask_user" | "asking_sites"}:
                self.text += data["message"]
            case {"message_type": "decontextualized_query", "decontextualized_query": query}:
                self.interpreted_as = query
            case {"message_type": "remember", "item_to_remember": fact}:
                self.remembered.append(fact)
            case _:
                return
        self.draw(None)

    def draw(self, besides: Any) -> None:
        self.drawn = (self.text, self.shown, besides)

    @property
    def shown(self) -> list[str]:
        """Results come as they are known: the client sorts."""
        return [one["name"] for one in sorted(self.items, key=lambda item: -item.get("score", 0))]

    @property
    def last_answers(self) -> list[dict[str, str]]:
        """What it sends with the next question: what was shown, in the order it came."""
        return [{"title": one["name"], "url": one["url"]} for one in self.items]


class JsClient(Client):
    """One answer in the JavaScript client of the repository: blocks in a bubble, all taken out and put back
    at each result."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.bubble: list[Any] = []
        self.items: list[dict[str, Any]] = []
        self.kept: dict[str, str] = {}  # what survives a redrawing: remembered, sources, summary
        self.passing: list[str] = []  # goes when anything else comes
        self.empty = True

    async def ask(self, query: str, *, prev: list[str] | None = None, **more: str) -> JsClient:
        """One question: every parameter is always there, empty or not."""
        await self.read(
            {
                "query_id": "query_1754000000000_7",
                "query": query,
                "site": "kitchen",
                "generate_mode": "list",
                "prev": json.dumps(prev or []),
                "item_to_remember": "",
                "context_url": "",
                **more,
            }
        )
        return self

    def hear(self, data: dict[str, Any]) -> None:
        assert data["query_id"] == "query_1754000000000_7"  # another's is passed over
        self.passing = []
        match data["message_type"]:
            case "remember" | "asking_sites" | "summary" as kind:
                self.kept[kind] = data["message"]
                self.bubble.append(data["message"])
                if kind == "summary":
                    self.redraw()
            case "result_batch":
                self.items += data["results"]
                self.redraw()
            case "item_details":
                self.items.append(data)
                self.redraw()
            case "nlws":
                self.bubble = [data["answer"], *(one["name"] for one in data["items"])]
                self.kept["remember"] = data["answer"]
                self.items += data["items"]
            case "compare_items":
                sides = [data[side]["name"] for side in ("item1", "item2")]
                assert all(type(data[side]["schema_object"]) is dict for side in ("item1", "item2"))
                self.bubble = [data["comparison"], *sides]
            case "ensemble_result":
                self.bubble.append(data["result"]["recommendations"]["theme"])
            case "intermediate_message":
                self.passing = [data["message"]]
            case "no_results" | "error" | "ask_user" | "site_is_irrelevant_to_query":
                self.bubble.append(data["message"])
            case "complete":
                self.redraw()
                if self.empty:
                    self.bubble.append("No results were found")
                return
            case _:
                return
        self.empty = self.empty and data["message_type"] == "asking_sites"

    def redraw(self) -> None:
        if self.items:
            self.items.sort(key=lambda item: -item.get("score", 0))
            kept = [self.kept[kind] for kind in ("remember", "asking_sites", "summary") if kind in self.kept]
            self.bubble = [*kept, *(one["name"] for one in self.items)]


class PackagedClient(JsClient):
    """One answer in the JavaScript client as it is published on npm: it knows fewer messages, draws a summary
    only beside items, and of `item_details` no more than a `message`."""

    def hear(self, data: dict[str, Any]) -> None:
        assert data["query_id"] == "query_1754000000000_7"
        match data["message_type"]:
            case "remember" | "item_details":
                if data.get("message"):
                    self.kept["remember"] = data["message"]
                    self.bubble.append(data["message"])
            case "asking_sites":
                self.kept["asking_sites"] = data["message"]
                self.bubble.append(data["message"])
            case "site_is_irrelevant_to_query" | "ask_user" | "intermediate_message":
                self.bubble.append(data["message"])
            case "result_batch":
                self.items += data["results"]
                self.redraw()
            case "summary":
                self.kept["summary"] = data["message"]
                self.redraw()
            case "nlws":
                self.kept["remember"] = data["answer"]
                self.bubble = [data["answer"], *(one["name"] for one in data["items"])]
                self.items += data["items"]
            case "complete":
                self.redraw()


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
        "a vegan one", prev=['salt, pepper "fine"', "stew"], last_ans=first.last_answers, site="kitchen"
    )
    assert second.interpreted_as == "a vegan stew"
    assert second.shown[0] == "Chickpea stew"
    (rewriting,) = [r for r in model.requests if r.schema_name == "PrevQueryDecontextualizer"]
    assert "salt, pepper" in rewriting.prompt


async def test_order_by_score_on_the_client_is_the_final_order(serve: Serve, model: ScriptedModel) -> None:
    server = await kitchen(serve, model)
    scores = {"Tofu curry": 95, "Beef stew": 90, "Chickpea stew": 85, "Lemon tart": 80, "Minestrone": 75}
    model.answer = SensibleModel(scores=scores)
    page = await ChatPage(server.url).ask("stew with vegetables, tofu, lemon")
    names = {item["document_id"]: item["name"] for item in page.items}
    assert len(names) == len(page.items), "an item that comes again is drawn again"
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


# ---------------------------------------------------------------- answers that are no list, as they are drawn

DETAILS = {"item_details_query": True, "item_title": "Minestrone", "details_being_asked": "the vegetables"}
EXTRACTED = {"item_name": "Minestrone", "requested_details": "Beans and pasta.", "additional_context": ""}
DINNER = {"single_item_type_query": False, "item_queries": ["vegan stew with chickpeas", "lemon tart"]}
MENU = {
    "theme": "A dinner.",
    "items": [{"category": "main", "name": "Chickpea stew"}, {"category": "dessert", "name": "Lemon tart"}],
    "overall_tips": ["Start early."],
}
SIDES = {
    "comparison_query": True,
    "item1_name": "Beef stew",
    "item2_name": "Chickpea stew",
    "details_requested": "time",
}
TOOLS = {
    "DetectQueryTypePrompt": DETAILS,
    "ExtractItemDetailsPrompt": EXTRACTED,
    "DetectMultiItemTypeQueryPrompt": DINNER,
    "EnsemblePrompt": MENU,
    "DetectComparisonPrompt": SIDES,
    "CompareItemsPrompt": {"comparison": "Beef is slower."},
    "SummarizeResultsPrompt": {"summary": "Two stews."},
}
ABOUT_ONE = "what vegetables are in the minestrone?"
TOGETHER = "a menu of a vegan stew and a tart"
COMPARED = "compare the beef stew and the chickpea stew"


async def test_details_are_drawn_once(serve: Serve, model: ScriptedModel) -> None:
    server = await kitchen(serve, model)
    model.answer = SensibleModel(replies=TOOLS)
    page = await ChatPage(server.url).ask(ABOUT_ONE)
    assert page.drawn[1] == ["Minestrone"]
    assert page.items[0]["description"] == "Beans and pasta."
    client = await JsClient(server.url).ask(ABOUT_ONE)
    assert client.bubble == ["Minestrone"]
    assert "result_batch" not in client.kinds
    packaged = await PackagedClient(server.url).ask(ABOUT_ONE)
    assert packaged.bubble == ["Minestrone: Beans and pasta."]


async def test_details_by_points_are_read_as_words(serve: Serve, model: ScriptedModel) -> None:
    server = await kitchen(serve, model)
    points = {"vegetables": ["beans", "carrots"], "other": {"pasta": "short"}}
    replies = {**TOOLS, "ExtractItemDetailsPrompt": {**EXTRACTED, "requested_details": points}}
    model.answer = SensibleModel(replies=replies)
    packaged = await PackagedClient(server.url).ask(ABOUT_ONE)
    assert packaged.bubble == ["Minestrone: vegetables: beans, carrots; other: pasta: short"]


async def test_menu_is_what_is_left_on_the_page(serve: Serve, model: ScriptedModel) -> None:
    server = await kitchen(serve, model)
    model.answer = SensibleModel(replies=TOOLS)
    page = await ChatPage(server.url).ask(TOGETHER)
    menu = page.drawn[2]
    assert (menu["theme"], menu["overall_tips"]) == ("A dinner.", ["Start early."])
    assert [one["name"] for one in menu["items"]] == ["Chickpea stew", "Lemon tart"]
    assert all({"category", "description", "url", "schema_object"} <= set(one) for one in menu["items"])
    assert page.heard[-1]["order"] == [one["document_id"] for one in menu["items"]]
    client = await JsClient(server.url).ask(TOGETHER)
    assert client.bubble == ["A dinner."]
    assert client.passing == []
    packaged = await PackagedClient(server.url).ask(TOGETHER)
    (told,) = packaged.bubble
    assert told.split("\n")[0] == "A dinner."
    assert "main: Chickpea stew. " in told
    assert "dessert: Lemon tart. " in told
    assert told.endswith("Start early.")


async def test_comparison_is_read_with_its_two_items(serve: Serve, model: ScriptedModel) -> None:
    server = await kitchen(serve, model)
    model.answer = SensibleModel(replies=TOOLS)
    page = await ChatPage(server.url).ask(COMPARED, site="kitchen")
    assert page.drawn == ("Beef is slower.", ["Beef stew", "Chickpea stew"], None)
    client = await JsClient(server.url).ask(COMPARED)
    assert client.bubble == ["Beef is slower.", "Beef stew", "Chickpea stew"]
    packaged = await PackagedClient(server.url).ask(COMPARED)
    assert packaged.bubble == ["Beef is slower.", "Beef stew", "Chickpea stew"]


async def test_comparison_by_points_is_read_as_lines(serve: Serve, model: ScriptedModel) -> None:
    folder = await serve(model=model)
    await folder.load("kitchen", KITCHEN)
    points = {"comparison": {"time": "Beef takes longer.", "diet": "One is vegan."}}
    model.answer = SensibleModel(replies={**TOOLS, "CompareItemsPrompt": points})
    page = await ChatPage(folder.url).ask(COMPARED, site="kitchen")
    (told,) = [one["message"] for one in page.heard if one["message_type"] == "summary"]
    assert told == "time: Beef takes longer.\ndiet: One is vegan."


async def test_an_answer_of_nothing_says_so_in_words(serve: Serve) -> None:
    server = await kitchen(serve)
    page = await ChatPage(server.url).ask("xyzzy", min_score="100")
    assert page.kinds[-3:] == ["intermediate_message", "no_results", "complete"]
    assert page.heard[-2]["message"] in page.drawn[0]
    client = await JsClient(server.url).ask("xyzzy", min_score="100")
    assert client.bubble == [page.heard[-2]["message"]]
    assert client.passing == []
    packaged = await PackagedClient(server.url).ask("xyzzy", min_score="100")
    assert packaged.bubble == client.bubble


@pytest.mark.parametrize("reader", [ChatPage, JsClient, PackagedClient])
@pytest.mark.parametrize(
    ("query", "kind"), [("what do you know about me?", "memories"), ("forget that I like soup", "forgotten")]
)
async def test_what_is_kept_of_a_person_is_told_in_words(
    serve: Serve, reader: type[ChatPage | JsClient], query: str, kind: str
) -> None:
    server = await kitchen(serve)
    asked = await reader(server.url).ask(query)
    (told,) = [one["message"] for one in asked.heard if one["message_type"] == kind]
    assert told in (asked.text if isinstance(asked, ChatPage) else asked.bubble)


async def test_model_that_is_down_is_named_beside_the_items(serve: Serve, model: ScriptedModel) -> None:
    server = await serve(model=model, llm={"max_retries": 0})
    await server.load("kitchen", KITCHEN)
    model.answer = lambda _: Fail(500)
    page = await ChatPage(server.url).ask("stew", site="kitchen")
    (error,) = [one for one in page.heard if one["message_type"] == "error"]
    text, names, _ = page.drawn
    assert error["message"] in text
    assert {"Beef stew", "Chickpea stew"} <= set(names)


# ---------------------------------------------------------------- the JavaScript client


@pytest.mark.parametrize(
    ("mode", "first"),
    [
        ("list", ["Chickpea stew", "Beef stew"]),
        ("summarize", ["Two stews.", "Chickpea stew", "Beef stew"]),
        ("generate", ["A short answer [1].", "Chickpea stew"]),
    ],
)
async def test_every_mode_and_a_follow_up_in_the_javascript_client(
    serve: Serve, model: ScriptedModel, mode: str, first: list[str]
) -> None:
    server = await kitchen(serve, model)
    model.answer = SensibleModel(
        rewrites={"a vegan one": "a vegan stew"},
        scores={"Chickpea stew": 95, "Beef stew": 60},
        replies={"SummarizeResultsPrompt": TOOLS["SummarizeResultsPrompt"]},
    )
    for client in (JsClient, PackagedClient):
        asked = await client(server.url).ask("stew", generate_mode=mode)
        assert asked.bubble == first
        again = await client(server.url).ask("a vegan one", prev=["stew"], generate_mode=mode)
        assert "Chickpea stew" in again.bubble
        assert "decontextualized_query" in again.kinds


async def test_protocol_that_is_named_goes_over_the_old_name_of_mode(serve: Serve) -> None:
    server = await kitchen(serve)
    frames = await server.ask("xyzzy", min_score=100, generate_mode="list", protocol="legacy")
    assert "intermediate_message" not in frames.kinds
    named = await server.ask("stew", generate_mode="list", protocol="structured", streaming=False)
    assert named.all == []
    status, answer = await server.json(
        "POST", "/ask", json={"query": "stew", "generate_mode": "list", "streaming": False}
    )
    assert (status, "results" in answer) == (200, True)


# ---------------------------------------------------------------- curl


async def curl(*arguments: str) -> str:
    path = shutil.which("curl")
    if path is None:
        pytest.skip("this test calls `curl`")
    running = await asyncio.create_subprocess_exec(
        path, "--silent", "--show-error", "--no-buffer", "--max-time", "20", *arguments, stdout=PIPE
    )
    out, _ = await running.communicate()
    assert running.returncode == 0
    return out.decode()


def frames_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]


async def test_curl_gets_the_stream_and_the_one_object(serve: Serve) -> None:
    server = await kitchen(serve)
    streamed = frames_of(await curl(f"{server.url}/ask?query=beef%20stew&site=kitchen"))
    assert streamed[0]["message_type"] == "api_version"
    assert streamed[-1]["message_type"] == "complete"
    for off in ("streaming=false", "streaming=False"):
        answer = json.loads(await curl(f"{server.url}/ask?query=beef%20stew&site=kitchen&{off}"))
        assert "Beef stew" in [one["name"] for one in answer["results"]]
    accepted = await curl("-H", "Accept: application/json", f"{server.url}/ask?query=stew")
    assert json.loads(accepted)["results"]
    encoded = await curl(
        "-G", f"{server.url}/ask", "--data-urlencode", "query=stew, with carrots", "-d", "generate_mode=list"
    )
    assert frames_of(encoded)[-1]["message_type"] == "complete"


async def test_curl_posts_json_and_forms(serve: Serve) -> None:
    server = await kitchen(serve)
    body = (
        '{"query": "stew", "site": "kitchen", "prev": ["soup"], "generate_mode": "list", "streaming": false}'
    )
    posted = await curl("-H", "Content-Type: application/json", "-d", body, f"{server.url}/ask")
    assert json.loads(posted)["results"]
    form = await curl("-d", "query=stew", "-d", "site=kitchen", "-d", "streaming=false", f"{server.url}/ask")
    assert json.loads(form)["results"]


async def test_curl_reads_sites_who_and_health(serve: Serve) -> None:
    server = await kitchen(serve)
    assert json.loads(await curl(f"{server.url}/sites?streaming=false"))["sites"] == ["kitchen"]
    assert json.loads(await curl(f"{server.url}/health"))
    who = await curl(f"{server.url}/who?query=stew&streaming=false")
    assert "kitchen" in who
    initialize = (
        '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2024-11-05",'
        ' "capabilities": {}, "clientInfo": {"name": "curl", "version": "1"}}}'
    )
    told = await curl(
        "-H",
        "Content-Type: application/json",
        "-H",
        "Accept: application/json, text/event-stream",
        "-d",
        initialize,
        f"{server.url}/mcp",
    )
    assert '"serverInfo"' in told
