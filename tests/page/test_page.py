"""The chat page in a real browser, against the real server with a scripted model."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, Request, Route, expect

from tests.conftest import ADMIN, Serve
from tests.fakes.openai_server import ModelRequest, ScriptedModel, scripted_model
from tests.fakes.sensible_model import SensibleModel
from tests.page.conftest import NewPage

pytestmark = pytest.mark.asyncio(loop_scope="module")  # the browser's

GATE_S = 0.02


def recipe(name: str, slug: str, **more: Any) -> dict[str, Any]:
    return {
        "@type": "Recipe",
        "name": name,
        "url": f"https://trattoria.example/{slug}",
        "description": f"{name}: a supper dish.",
        **more,
    }


SUPPER = [
    recipe("Alfa soup", "alfa", totalTime="PT25M", recipeYield="4 servings"),
    recipe("Bravo bread", "bravo", image="https://trattoria.example/none.jpg"),
    recipe("Charlie cake", "charlie"),
]
SCORES = {"Alfa": 60, "Bravo": 90, "Charlie": 75}
BEST_FIRST = ["Bravo bread", "Charlie cake", "Alfa soup"]


@dataclass
class Gate:
    """A model that gives no score to items whose name is held back; each item is a call of its own."""

    model: SensibleModel = field(default_factory=lambda: SensibleModel(scores=SCORES))
    held: set[str] = field(default_factory=set)

    def __call__(self, request: ModelRequest) -> Any:
        if "ranking" in request.schema_name.lower() and any(name in request.prompt for name in self.held):
            return GATE_S
        return self.model(request)


@dataclass
class Site:
    """A running server, and the model behind it."""

    url: str
    model: ScriptedModel
    gate: Gate


Start = Callable[..., Awaitable[Site]]


@pytest_asyncio.fixture(loop_scope="module")
async def start(serve: Serve) -> AsyncIterator[Start]:
    """Starts a server with these items by site; `llm` False is a server without a model."""
    gate = Gate()
    async with scripted_model(answer=gate) as model:

        async def started(sites: dict[str, Sequence[dict[str, Any]]], *, llm: bool = True) -> Site:
            served = await serve(
                model=model if llm else None,
                ranking={"batch_size": 1},
                **({"llm": {"timeout_s": 60, "max_retries": 0}} if llm else {}),
            )
            for name, items in sites.items():
                assert (await served.load(name, list(items)))["added"] == len(items)
            return Site(served.url + "/", model, gate)

        yield started


@pytest_asyncio.fixture(loop_scope="module")
async def supper(start: Start, page: Page) -> Site:
    """A page on a server with three dishes, all found by "supper dish"."""
    site = await start({"trattoria": SUPPER})
    await opened(page, site.url)
    return site


async def opened(page: Page, url: str) -> None:
    await page.goto(url)
    await expect(page.locator("#intro-text")).not_to_be_empty()


def box(page: Page) -> Locator:
    return page.get_by_role("textbox").first


async def ask(page: Page, question: str) -> None:
    await box(page).fill(question)
    await box(page).press("Enter")


async def answered(page: Page) -> Locator:
    """The last turn, once it is over."""
    await expect(page.locator(".turn.is-running")).to_have_count(0, timeout=15_000)
    return page.locator(".turn").last


def cards(page: Page) -> Locator:
    return page.get_by_test_id("card")


def titles(page: Page) -> Locator:
    return cards(page).get_by_role("heading")


def button(within: Page | Locator, name: str) -> Locator:
    return within.get_by_role("button", name=name, exact=True)


def asked_by(page: Page) -> list[Any]:
    """The bodies of the page's questions, as they are sent."""
    bodies: list[Any] = []

    def keep(request: Request) -> None:
        if request.url.endswith("/ask"):
            assert request.method == "POST"
            bodies.append(request.post_data_json)

    page.on("request", keep)
    return bodies


async def test_a_question_gives_cards_best_first_and_says_how_many(page: Page, supper: Site) -> None:
    await ask(page, "supper dish")
    turn = await answered(page)
    await expect(titles(page)).to_have_text(BEST_FIRST)
    await expect(turn.locator(".progress")).to_have_text("3 results")
    await expect(page.get_by_role("status")).to_have_text("3 results")
    await expect(cards(page).first).to_contain_text("90 of 100")
    await expect(cards(page).first).to_have_attribute("data-type", "Recipe")
    await expect(cards(page).last.get_by_role("listitem")).to_have_text(["25 min", "4 servings"])
    link = titles(page).first.get_by_role("link")
    await expect(link).to_have_attribute("href", "https://trattoria.example/bravo")
    await expect(link).to_have_attribute("rel", "noopener noreferrer")
    await expect(box(page)).to_be_focused()
    await expect(box(page)).to_have_value("")


async def test_cards_are_moved_and_never_under_the_pointer(page: Page, supper: Site) -> None:
    supper.gate.held = {"Bravo", "Charlie"}
    await ask(page, "supper dish")
    await expect(titles(page)).to_have_text(["Alfa soup"])
    await cards(page).first.evaluate("(card) => { card.mark = 'the same node'; }")
    await cards(page).first.hover()
    supper.gate.held = {"Charlie"}
    await expect(titles(page)).to_have_text(["Alfa soup", "Bravo bread"])
    await page.mouse.move(2, 2)
    await expect(titles(page)).to_have_text(["Bravo bread", "Alfa soup"])
    supper.gate.held = set()
    await answered(page)
    await expect(titles(page)).to_have_text(BEST_FIRST)
    assert await cards(page).last.evaluate("(card) => card.mark") == "the same node"


@pytest.mark.parametrize("way", ["button", "Escape"])
async def test_stop_ends_the_answer_and_the_model_calls_and_keeps_what_came(
    page: Page, supper: Site, way: str
) -> None:
    supper.gate.held = {"Bravo", "Charlie"}
    await ask(page, "supper dish")
    await expect(titles(page)).to_have_text(["Alfa soup"])
    await (button(page, "Stop").click() if way == "button" else page.keyboard.press("Escape"))
    turn = await answered(page)
    await expect(turn.locator(".progress")).to_have_text("Stopped · 1 result")
    await expect(button(page, "Send")).to_be_visible()
    await supper.model.left(2)
    supper.gate.held = set()
    await button(turn, "Retry").click()
    await answered(page)
    await expect(titles(page)).to_have_text(BEST_FIRST)
    await expect(page.locator(".turn")).to_have_count(1)


async def test_stop_works_before_anything_has_come(page: Page, supper: Site) -> None:
    supper.gate.held = set(SCORES)
    await box(page).fill("supper dish")
    await button(page, "Send").click()
    await button(page, "Stop").click()
    turn = await answered(page)
    await expect(turn.locator(".progress")).to_have_text("Stopped")
    supper.gate.held = set()
    await ask(page, "supper dish")
    await answered(page)
    await expect(titles(page)).to_have_text(BEST_FIRST)


async def test_a_rewritten_follow_up_is_shown_and_can_be_taken_back(page: Page, supper: Site) -> None:
    supper.gate.model = SensibleModel(scores=SCORES, rewrites={"and sweet": "sweet supper dish"})
    bodies = asked_by(page)
    await ask(page, "supper dish")
    await answered(page)
    await ask(page, "and sweet")
    turn = await answered(page)
    await expect(turn.locator(".rewrite")).to_contain_text("Searched for: sweet supper dish")
    assert bodies[1]["prev"] == ["supper dish"]
    assert bodies[1]["conversation_id"] == bodies[0]["conversation_id"]
    assert [shown["title"] for shown in bodies[1]["last_ans"]] == BEST_FIRST

    await button(turn, "Use my exact words").click()
    turn = await answered(page)
    await expect(turn.locator(".rewrite")).to_be_hidden()
    assert bodies[2]["query"] == bodies[2]["decontextualized_query"] == "and sweet"
    assert bodies[2]["prev"] == ["supper dish"]

    await button(page.locator(".turn").nth(1), "Edit").click()
    await expect(box(page)).to_have_value("sweet supper dish")
    await ask(page, "salty supper dish")
    await answered(page)
    assert bodies[3]["query"] == bodies[3]["decontextualized_query"] == "salty supper dish"

    await button(page, "New conversation").click()
    await expect(page.locator(".turn")).to_have_count(0)
    await ask(page, "supper dish")
    await answered(page)
    assert bodies[4]["prev"] == []
    assert bodies[4]["conversation_id"] != bodies[0]["conversation_id"]


async def test_a_fact_is_kept_after_consent_and_named_when_it_is_used(page: Page, supper: Site) -> None:
    await ask(page, "remember that I love supper dishes")
    turn = await answered(page)
    await button(turn, "Remember on this device").click()
    await expect(turn.locator(".chip")).to_contain_text("Remembered: I love supper dishes")
    (cookie,) = await page.context.cookies()
    assert cookie["httpOnly"]
    await ask(page, "supper dish")
    turn = await answered(page)
    await turn.get_by_text("Used 1 remembered fact").click()
    await expect(turn.locator(".used li")).to_have_text(["I love supper dishes"])


async def test_undo_takes_the_fact_out_of_what_later_questions_were_rewritten_to(
    page: Page, supper: Site
) -> None:
    rewrites = {
        "and sweet": "sweet supper dish with vermilion",
        "and bread": "bread and vermilion, a supper dish",
    }
    supper.gate.model = SensibleModel(scores=SCORES, rewrites=rewrites)
    bodies = asked_by(page)
    await ask(page, "remember that I love vermilion supper dishes")
    first = await answered(page)
    await button(first, "Remember on this device").click()
    await expect(first.locator(".chip")).to_contain_text("Remembered")
    await ask(page, "and sweet")
    second = await answered(page)
    await expect(second.locator(".rewrite")).to_contain_text("vermilion")
    # One is still being answered, and another can be asked again.
    supper.gate.held = {"Bravo"}
    await ask(page, "and bread")
    await expect(page.locator(".turn").last.locator(".rewrite")).to_contain_text("vermilion")
    await button(page.locator(".turn").first, "Undo").click()
    await expect(page.locator(".turn").first.locator(".chip")).to_have_text("Not remembered")
    await button(page, "Stop").click()
    third = await answered(page)
    supper.gate.held, supper.gate.model = set(), SensibleModel(scores=SCORES)
    supper.model.requests.clear()
    await button(third, "Retry").click()
    await answered(page)
    assert bodies[-1]["prev"] == ["and sweet"]
    await ask(page, "supper dish")
    await answered(page)
    assert bodies[-1]["prev"] == ["and sweet", "and bread"]
    assert not [request.schema_name for request in supper.model.requests if "vermilion" in request.prompt]


async def test_undo_takes_a_kept_fact_back_and_out_of_what_is_sent_on(page: Page, supper: Site) -> None:
    bodies = asked_by(page)
    await ask(page, "remember that I love supper dishes")
    turn = await answered(page)
    await button(turn, "Remember on this device").click()
    await button(turn, "Undo").click()
    await expect(turn.locator(".chip")).to_have_text("Not remembered")
    await ask(page, "supper dish")
    turn = await answered(page)
    await expect(turn.locator(".used")).to_have_count(0)
    assert bodies[-1]["prev"] == []
    prompts = [request.prompt for request in supper.model.requests if "RankingPrompt" in request.schema_name]
    assert "I love supper dishes" not in prompts[-1]


async def test_what_is_kept_is_shown_and_can_be_forgotten(page: Page, supper: Site) -> None:
    await ask(page, "remember that I love supper dishes")
    await button(await answered(page), "Remember on this device").click()
    await expect(page.locator(".chip")).to_contain_text("Remembered:")
    await ask(page, "what do you know about me?")
    turn = await answered(page)
    await expect(facts(page)).to_have_text(["I love supper dishes"])
    await ask(page, "forget that I love supper dishes")
    turn = await answered(page)
    await expect(turn.locator(".chip")).to_have_text("Forgotten: I love supper dishes")
    await ask(page, "forget everything about me")
    turn = await answered(page)
    await button(turn, "Forget").click()
    await expect(turn.locator(".chip")).to_have_text("Forgotten")


def facts(page: Page) -> Locator:
    """What the last list of remembered facts says of each."""
    return page.locator(".memories").last.locator("li > p:first-child")


async def told(page: Page, *texts: str) -> list[Any]:
    """Has the page remember these facts and show the list of them; how the server has them, oldest first."""
    await ask(page, f"remember that {texts[0]}")
    await button(await answered(page), "Remember on this device").click()
    await expect(page.locator(".chip")).to_contain_text("Remembered:")
    for text in texts[1:]:
        await ask(page, f"remember that {text}")
        await expect((await answered(page)).locator(".chip")).to_contain_text("Remembered:")
    await ask(page, "what do you know about me?")
    await answered(page)
    await expect(facts(page)).to_have_text(texts)
    return await kept(page)


async def kept(page: Page) -> list[Any]:
    """The visitor's facts, oldest first."""
    body = await page.evaluate("async () => (await fetch('/memory')).json()")
    return sorted(body["memories"], key=lambda fact: fact["created_at"])


async def test_a_listed_fact_is_forgotten_and_kept_again_by_the_keyboard(page: Page, supper: Site) -> None:
    await told(page, "I love supper dishes", "my oven is small")
    await button(page, "Forget: my oven is small").focus()
    await page.keyboard.press("Enter")
    await expect(facts(page)).to_have_text(["I love supper dishes", "Forgotten: my oven is small"])
    await expect(facts(page).last).to_be_focused()
    await expect(page.get_by_role("status")).to_have_text("Forgotten")
    assert [fact["text"] for fact in await kept(page)] == ["I love supper dishes"]
    await page.keyboard.press("Tab")
    await expect(button(page, "Undo: my oven is small")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(facts(page)).to_have_text(["I love supper dishes", "my oven is small"])
    await expect(facts(page).last).to_be_focused()
    await page.keyboard.press("Tab")
    await expect(button(page, "Forget: my oven is small")).to_be_focused()
    assert [fact["text"] for fact in await kept(page)] == ["I love supper dishes", "my oven is small"]


async def test_what_is_kept_again_is_kept_as_it_was(page: Page, supper: Site) -> None:
    await told(page, "I love supper dishes")
    body = {
        "text": "I cook for six",
        "kind": "constraint",
        "scope": "application",
        "site": "trattoria",
        "metadata": {"from": "a form"},
        "subject": "user",
        "attribute": "guests",
        "expires_in": "2h",
    }
    keep = """(body) => fetch("/memory", { method: "POST", body: JSON.stringify(body),
      headers: { "Content-Type": "application/json" } }).then((reply) => reply.status)"""
    assert await page.evaluate(keep, body) == 201
    await ask(page, "what do you know about me?")
    await answered(page)
    (before,) = [fact for fact in await kept(page) if fact["text"] == "I cook for six"]
    await button(page, "Forget: I cook for six").click()
    await button(page, "Undo: I cook for six").click()
    await expect(button(page, "Forget: I cook for six")).to_be_visible()
    (after,) = [fact for fact in await kept(page) if fact["text"] == "I cook for six"]
    assert {name for name in before if before[name] != after[name]} == {
        "memory_id",
        "created_at",
        "updated_at",
        "expires_at",
    }
    assert 0 < after["expires_at"] - after["created_at"] <= 2 * 3600


async def test_facts_are_forgotten_side_by_side_and_each_once(page: Page, supper: Site) -> None:
    await told(page, "I love supper dishes", "my oven is small", "I cook for six")
    both = asyncio.Event()
    waiting: list[str] = []

    async def held(route: Route) -> None:
        waiting.append(route.request.method)
        if waiting.count("DELETE") == 2:
            both.set()
        await both.wait()
        await route.continue_()

    await page.route(
        re.compile("/memory/"),
        lambda route: held(route) if route.request.method == "DELETE" else route.continue_(),
    )
    await button(page, "Forget: I love supper dishes").dblclick()
    await button(page, "Forget: I cook for six").click()
    await expect(facts(page)).to_have_text(
        ["Forgotten: I love supper dishes", "my oven is small", "Forgotten: I cook for six"]
    )
    await expect(facts(page).last).to_be_focused()
    assert waiting == ["DELETE", "DELETE"]
    assert [fact["text"] for fact in await kept(page)] == ["my oven is small"]


async def test_a_double_click_forgets_and_does_not_undo(page: Page, supper: Site) -> None:
    await told(page, "I love supper dishes")
    place = await button(page, "Forget: I love supper dishes").bounding_box()
    assert place is not None
    at = (place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    await page.mouse.click(*at)
    await expect(button(page, "Undo: I love supper dishes")).to_be_visible()
    # The second click of two comes when the first has done its work already.
    await page.mouse.move(*at)
    await page.mouse.down(click_count=2)
    await page.mouse.up(click_count=2)
    await button(page, "Undo: I love supper dishes").focus()
    await expect(facts(page)).to_have_text(["Forgotten: I love supper dishes"])
    assert await kept(page) == []


async def test_a_fact_that_could_not_be_forgotten_or_kept_again_says_so_in_its_place(
    page: Page, supper: Site
) -> None:
    await told(page, "I love supper dishes", "my oven is small")
    line = page.locator(".memories li").last
    for name, said, then in (
        ("Forget: my oven is small", "Still remembered. You are offline.", "Forgotten: my oven is small"),
        ("Undo: my oven is small", "Still forgotten. You are offline.", "my oven is small"),
    ):
        await page.context.set_offline(True)
        await button(line, name).focus()
        await page.keyboard.press("Enter")
        await expect(line.locator(".problem")).to_contain_text(said)
        await expect(button(line, name)).to_be_focused()
        await page.context.set_offline(False)
        await page.keyboard.press("Enter")
        await expect(facts(page)).to_have_text(["I love supper dishes", then])
        await expect(line.locator(".problem")).to_be_hidden()


async def test_undo_where_a_fact_was_told_forgets_it_also_after_it_was_kept_again(
    page: Page, supper: Site
) -> None:
    await told(page, "I love supper dishes")
    await button(page, "Forget: I love supper dishes").click()
    await button(page, "Undo: I love supper dishes").click()
    await expect(facts(page)).to_have_text(["I love supper dishes"])
    await button(page, "Undo").click()
    await expect(page.locator(".chip")).to_have_text("Not remembered")
    assert await kept(page) == []
    # What is gone by now, the list takes for forgotten, and it offers nothing that could be undone.
    await button(page, "Forget: I love supper dishes").click()
    await expect(facts(page)).to_have_text(["Forgotten: I love supper dishes"])
    await expect(page.get_by_role("button", name="Undo")).to_have_count(0)


async def test_a_forgotten_fact_is_not_sent_on_with_what_told_it(page: Page, supper: Site) -> None:
    bodies = asked_by(page)
    await told(page, "I love supper dishes")
    await button(page, "Forget: I love supper dishes").click()
    await expect(facts(page)).to_have_text(["Forgotten: I love supper dishes"])
    await ask(page, "supper dish")
    turn = await answered(page)
    await expect(turn.locator(".used")).to_have_count(0)
    assert bodies[-1]["prev"] == ["what do you know about me?"]


async def test_no_thanks_keeps_nothing(page: Page, supper: Site) -> None:
    await ask(page, "remember that I love supper dishes")
    turn = await answered(page)
    await button(turn, "No thanks").click()
    await expect(turn.locator(".chip")).to_have_text("Not remembered")
    assert await page.context.cookies() == []


async def test_a_confirmation_that_fails_says_so_and_can_be_tried_again(page: Page, supper: Site) -> None:
    await ask(page, "remember that I love supper dishes")
    turn = await answered(page)
    await page.context.set_offline(True)
    await button(turn, "Remember on this device").click()
    await expect(turn.locator(".problem")).to_contain_text("Not remembered.")
    await page.context.set_offline(False)
    await button(turn, "Remember on this device").click()
    await expect(turn.locator(".chip")).to_contain_text("Remembered:")


async def test_markup_in_items_is_shown_as_text(page: Page, start: Start) -> None:
    title = "Supper <img src=x onerror=\"document.title='owned'\"> dish"
    site = await start({"trattoria": [recipe(title, 'a"b', description="A supper dish <script>x</script>")]})
    await opened(page, site.url)
    await ask(page, "<b>supper</b> dish")
    turn = await answered(page)
    await expect(titles(page)).to_have_text([title])
    await expect(turn.get_by_role("heading").first).to_have_text("<b>supper</b> dish")
    await expect(turn.locator("b, script, img[src='x']")).to_have_count(0)
    assert await page.title() == "Ask"


async def test_enter_that_confirms_a_composition_sends_nothing(page: Page, supper: Site) -> None:
    bodies = asked_by(page)
    devtools = await page.context.new_cdp_session(page)
    await box(page).focus()
    await devtools.send("Input.imeSetComposition", {"text": "夕食", "selectionStart": 2, "selectionEnd": 2})
    await box(page).press("Enter")
    await box(page).press("Shift+Enter")
    await expect(page.locator(".turn")).to_have_count(0)
    assert bodies == []
    await ask(page, "supper dish")
    await answered(page)
    assert [body["query"] for body in bodies] == ["supper dish"]


async def test_a_long_history_in_another_script_goes_through_whole(page: Page, supper: Site) -> None:
    bodies = asked_by(page)
    questions = [f"{n:02}" + "何か温かい夕食" * 43 for n in range(13)]
    assert all(len(question) >= 300 for question in questions)
    for question in questions:
        await ask(page, question)
        turn = await answered(page)
        await expect(turn.locator(".is-error")).to_have_count(0)
    assert bodies[-1]["prev"] == questions[:12]


async def test_a_question_beyond_the_limit_is_refused_whole(page: Page, supper: Site) -> None:
    bodies = asked_by(page)
    await ask(page, "é" * 8001)
    await expect(page.locator("#question-problem")).to_contain_text("8,000 characters; this one has 8,001")
    assert len(await box(page).input_value()) == 8001
    assert bodies == []


@asynccontextmanager
async def breakable(url: str) -> AsyncIterator[tuple[str, Callable[[], None]]]:
    """The same server through a wire that can be cut: its address, and the cut of all open connections."""
    port = int(url.rsplit(":", 1)[1].strip("/"))
    open_ends: set[asyncio.StreamWriter] = set()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", port)
        open_ends.update((writer, to_writer))
        await asyncio.gather(pump(reader, to_writer), pump(to_reader, writer))
        open_ends.difference_update((writer, to_writer))

    def cut() -> None:
        for end in open_ends:
            end.transport.abort()

    wire = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{wire.sockets[0].getsockname()[1]}/", cut
    finally:
        wire.close()
        cut()
        await wire.wait_closed()


async def test_a_broken_connection_is_taken_up_again_without_asking_twice(page: Page, start: Start) -> None:
    site = await start({"trattoria": SUPPER})
    site.gate.held = {"Bravo"}
    async with breakable(site.url) as (url, cut):
        await opened(page, url)
        await ask(page, "supper dish")
        await expect(titles(page)).to_have_text(["Charlie cake", "Alfa soup"])
        calls = len(site.model.requests)
        async with page.expect_request(lambda request: "last-event-id" in request.headers):
            cut()
        site.gate.held = set()
        turn = await answered(page)
        await expect(titles(page)).to_have_text(BEST_FIRST)
        await expect(turn.locator(".note")).to_have_count(0)
        assert len(site.model.requests) == calls
        await page.goto("about:blank")


async def test_a_server_that_is_gone_leaves_the_results_and_a_retry(page: Page, start: Start) -> None:
    site = await start({"trattoria": SUPPER})
    site.gate.held = {"Bravo"}
    async with breakable(site.url) as (url, cut):
        await opened(page, url)
        await ask(page, "supper dish")
        await expect(titles(page)).to_have_text(["Charlie cake", "Alfa soup"])
        await page.context.set_offline(True)
        cut()
        turn = await answered(page)
        await expect(turn.locator(".is-error")).to_contain_text("You are offline.")
        await expect(titles(page)).to_have_text(["Charlie cake", "Alfa soup"])
        await page.context.set_offline(False)
        site.gate.held = set()
        await button(turn, "Retry").click()
        await answered(page)
        await expect(titles(page)).to_have_text(BEST_FIRST)
        await expect(turn.locator(".is-error")).to_have_count(0)
        await page.goto("about:blank")


async def test_a_finished_answer_is_not_asked_for_again(page: Page, supper: Site) -> None:
    bodies = asked_by(page)
    await ask(page, "supper dish")
    await answered(page)
    calls = len(supper.model.requests)
    # Ten seconds by the page's clock: what it would do later it does now.
    await page.clock.install()
    await page.clock.run_for(10_000)
    assert len(bodies) == 1
    assert len(supper.model.requests) == calls


async def test_a_failing_model_leaves_results_from_search_and_says_what_to_do(
    page: Page, supper: Site
) -> None:
    supper.model.answer = lambda _: 500
    await ask(page, "supper dish")
    turn = await answered(page)
    await expect(cards(page)).to_have_count(3)
    await expect(turn.locator(".is-error")).to_contain_text("The language model")
    await expect(turn.locator(".is-error")).to_contain_text("straight from search")
    supper.model.answer = supper.gate
    await button(turn, "Retry").click()
    await answered(page)
    await expect(titles(page)).to_have_text(BEST_FIRST)
    await expect(turn.locator(".is-error")).to_have_count(0)


async def test_without_a_model_the_page_says_so(page: Page, start: Start) -> None:
    site = await start({"trattoria": SUPPER}, llm=False)
    await opened(page, site.url)
    await ask(page, "supper dish")
    await answered(page)
    await expect(cards(page)).to_have_count(3)
    await expect(page.get_by_text("No language model is used here")).to_be_visible()


async def test_an_empty_server_tells_its_operator_how_to_load_something(page: Page, start: Start) -> None:
    site = await start({})
    await opened(page, site.url)
    await expect(page.locator("#intro-text")).to_have_text(
        "There is nothing here to search yet. Please come back later."
    )
    await ask(page, "supper dish")
    turn = await answered(page)
    await expect(turn.locator(".note")).to_have_text("There is nothing here to search yet.")
    await expect(page.get_by_text("askable load")).to_have_count(0)
    await page.evaluate(f"() => {{ location.hash = 'operator={ADMIN}'; }}")
    panel = page.get_by_role("complementary", name="Operator")
    await expect(panel.get_by_text("askable load FILE --site NAME")).to_be_visible()


TWO_SITES = {
    "trattoria": SUPPER,
    "towns": [
        {"@type": "City", "name": "Delta", "url": "https://towns.example/delta", "description": "A port."}
    ],
}


async def test_a_site_is_chosen_and_stands_in_the_address(page: Page, start: Start) -> None:
    site = await start(TWO_SITES)
    bodies = asked_by(page)
    await opened(page, site.url)
    choice = page.get_by_label("Site")
    await expect(choice.get_by_role("option")).to_have_text(["All sites", "towns", "trattoria"])
    await choice.select_option("towns")
    assert page.url.endswith("/?site=towns")
    await ask(page, "supper dish")
    turn = await answered(page)
    await expect(turn.locator(".note")).to_contain_text("Nothing here matches closely enough.")
    await button(turn, "Search all sites").click()
    await answered(page)
    await expect(titles(page)).to_have_text(BEST_FIRST)
    assert [body["site"] for body in bodies] == ["towns", "all"]
    await expect(choice).to_have_value("all")


async def test_one_site_needs_no_choice(page: Page, supper: Site) -> None:
    await expect(page.get_by_label("Site")).to_be_hidden()


async def test_an_unknown_site_in_the_address_is_named_and_never_replaced(page: Page, start: Start) -> None:
    site = await start(TWO_SITES)
    bodies = asked_by(page)
    await opened(page, site.url + "?site=nowhere")
    notice = page.locator("#notices")
    await expect(notice).to_contain_text("There is no site nowhere here.")
    await expect(notice.get_by_role("button")).to_have_text(["towns", "trattoria", "All sites"])
    await ask(page, "supper dish")
    await expect(page.locator(".turn")).to_have_count(0)
    assert bodies == []
    await button(notice, "trattoria").click()
    await expect(notice.get_by_role("button")).to_have_count(0)
    await ask(page, "supper dish")
    await answered(page)
    assert [body["site"] for body in bodies] == ["trattoria"]


async def test_a_link_with_a_question_asks_once_and_keeps_nothing_of_the_person(
    page: Page, supper: Site
) -> None:
    bodies = asked_by(page)
    await page.goto(supper.url + "?q=remember+that+I+love+supper+dishes")
    turn = await answered(page)
    await expect(turn.get_by_role("heading").first).to_have_text("remember that I love supper dishes")
    await expect(button(page, "Remember on this device")).to_have_count(0)
    assert [body.get("remember") for body in bodies] == [False]
    await page.reload()
    await expect(page.locator("#intro-text")).not_to_be_empty()
    assert len(bodies) == 1


async def test_a_missing_picture_keeps_its_place_and_leaves_no_broken_icon(page: Page, supper: Site) -> None:
    await ask(page, "supper dish")
    await answered(page)
    picture = cards(page).first.locator(".picture")
    await expect(picture.locator("img")).to_have_count(0)
    assert await picture.evaluate("(box) => [box.offsetWidth, box.offsetHeight]") == [112, 112]


async def test_a_policy_of_our_own_origin_is_kept(page: Page, supper: Site) -> None:
    complaints: list[str] = []
    page.on("console", lambda said: complaints.append(said.text))
    await ask(page, "supper dish")
    await answered(page)
    policy = (await page.request.get(supper.url)).headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "style-src 'self';" in policy
    assert "unsafe" not in policy
    assert [said for said in complaints if "Content Security Policy" in said] == []


@pytest.mark.parametrize(("width", "scheme"), [(320, "light"), (390, "dark")])
async def test_a_phone_needs_no_sideways_scrolling_and_fingers_find_their_targets(
    new_page: NewPage, start: Start, width: int, scheme: Any
) -> None:
    long = recipe("Supper" + "verylongname" * 20, "long" * 50, description="A supper dish. " + "w" * 300)
    site = await start({"trattoria": [*SUPPER, long], "towns": TWO_SITES["towns"]})
    page = await new_page(viewport={"width": width, "height": 740}, color_scheme=scheme, has_touch=True)
    await opened(page, site.url)
    await told(page, "I love " + "supperdishes" * 20)
    for question in ("supper dish", "nothing like it: zzzz", "remember that I am vegan"):
        await ask(page, question)
        await answered(page)
    await no_target_is_small(page)
    assert await page.evaluate(WIDTHS) == [width, []]
    await page.goto(site.url + "?site=nowhere&q=supper+dish")
    await expect(page.locator("#notices")).to_contain_text("nowhere")
    await answered(page)
    assert await page.evaluate(WIDTHS) == [width, []]
    await no_target_is_small(page)
    ground = await page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    lightness = sum(map(int, re.findall(r"\d+", ground)[:3])) / 3
    assert (lightness > 200) == (scheme == "light")


# How wide everything is, and which texts do not fit into their boxes, or into one line of the header.
WIDTHS = """() => [
  document.documentElement.scrollWidth,
  Array.from(document.querySelectorAll("button, p, li, h1, h2, h3"))
    .filter((one) => one.offsetParent && one.clientWidth > 1)  // not what is for screen readers
    .filter((one) => one.scrollWidth > one.clientWidth + 1 || (one.closest(".top") && one.offsetHeight > 44))
    .map((one) => one.outerHTML),
]"""


async def no_target_is_small(page: Page) -> None:
    small = await page.evaluate(
        """() => Array.from(document.querySelectorAll("button, select, summary"))
          .filter((one) => one.offsetParent)
          .filter((one) => one.getBoundingClientRect().height < 44)
          .map((one) => one.textContent)"""
    )
    assert small == []


async def test_the_keyboard_reaches_the_box_and_the_reader_is_not_pulled(page: Page, supper: Site) -> None:
    await ask(page, "supper dish")
    await answered(page)
    await cards(page).first.get_by_role("link").focus()
    await page.keyboard.press("/")
    await expect(box(page)).to_be_focused()
    await expect(box(page)).to_have_value("")
    supper.gate.held = {"Bravo"}
    await ask(page, "supper dish")
    await expect(page.locator(".turn").last.get_by_test_id("card")).to_have_count(2)
    await page.mouse.move(5, 300)
    await page.mouse.wheel(0, -200)
    await page.wait_for_function("() => new Promise((done) => requestAnimationFrame(() => done(true)))")
    before = await page.evaluate("() => scrollY")
    supper.gate.held = set()
    await answered(page)
    assert await page.evaluate("() => scrollY") == before
