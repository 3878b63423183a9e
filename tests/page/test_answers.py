"""Kinds of answers on the page, in a real browser against the real server: written ones, summaries, details,
questions back; and what the operator sees."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, Request, expect

from server.keys import LIBRARY, STATE
from tests.conftest import ADMIN, Serve, Served
from tests.fakes.openai_server import ModelRequest, ScriptedModel, scripted_model
from tests.fakes.sensible_model import SensibleModel, fitting
from tests.page.conftest import NewPage

pytestmark = pytest.mark.asyncio(loop_scope="module")  # the browser's

SCORES = {"Alfa": 60, "Bravo": 90, "Charlie": 75, "Delta": 55}
EVIL = "<img src=x onerror=\"document.title='owned'\">"
WRITTEN = f"Begin with bread [1].\n\n  - cake [2]\n  - {EVIL}\nThat is all."


def dish(name: str, **more: Any) -> dict[str, Any]:
    return {
        "@type": "Recipe",
        "name": name,
        "url": f"https://trattoria.example/{name.split()[0].lower()}",
        "description": f"{name}: a supper dish.",
        **more,
    }


DISHES = [dish("Alfa soup"), dish("Bravo bread"), dish("Charlie cake"), dish("Delta rice")]


@dataclass
class Kitchen:
    """A server with four dishes; `says` are the model's replies by prompt, else it is sensible."""

    url: str
    model: ScriptedModel
    says: dict[str, Any]
    served: Served


Start = Callable[..., Awaitable[Kitchen]]


@pytest_asyncio.fixture(loop_scope="module")
async def start(serve: Serve) -> AsyncIterator[Start]:
    says: dict[str, Any] = {}
    sensible = SensibleModel(scores=SCORES)

    def answer(request: ModelRequest) -> Any:
        said = next((reply for name, reply in says.items() if request.schema_name.startswith(name)), None)
        if said is None:
            return sensible(request)
        return fitting(request, said) if isinstance(said, dict) else said

    async with scripted_model(answer=answer) as model:

        async def started(
            *, llm: bool = True, sites: dict[str, list[dict[str, Any]]] | None = None, **tables: Any
        ) -> Kitchen:
            if llm:
                tables["llm"] = {"timeout_s": 60, "max_retries": 0}
            served = await serve(model=model if llm else None, **tables)
            for name, items in (sites or {"trattoria": DISHES}).items():
                await served.load(name, items)
            return Kitchen(served.url + "/", model, says, served)

        yield started


async def opened(page: Page, url: str) -> None:
    await page.goto(url)
    await expect(page.locator("#intro-text")).not_to_be_empty()


async def ask(page: Page, question: str, mode: str | None = None) -> Locator:
    """The turn, once it is over."""
    if mode is not None:
        await page.get_by_role("radio", name=mode).check()
    await page.get_by_role("textbox").first.fill(question)
    await page.get_by_role("textbox").first.press("Enter")
    return await answered(page)


async def answered(page: Page) -> Locator:
    await expect(page.locator(".turn")).not_to_have_count(0)
    await expect(page.locator(".turn.is-running")).to_have_count(0, timeout=15_000)
    return page.locator(".turn").last


def titles(turn: Locator) -> Locator:
    return turn.get_by_test_id("card").get_by_role("heading")


def asked_by(page: Page) -> list[Any]:
    bodies: list[Any] = []
    page.on("request", lambda one: bodies.append(one.post_data_json) if one.url.endswith("/ask") else None)
    return bodies


async def above(first: Locator, second: Locator) -> bool:
    upper, lower = await first.bounding_box(), await second.bounding_box()
    assert upper is not None
    assert lower is not None
    return upper["y"] + upper["height"] <= lower["y"]


async def test_the_kind_of_answer_is_chosen_by_arrow_keys_sent_and_kept(page: Page, start: Start) -> None:
    kitchen = await start()
    bodies = asked_by(page)
    await opened(page, kitchen.url)
    radios = page.get_by_role("radiogroup", name="Kind of answer").get_by_role("radio")
    await expect(radios).to_have_count(3)
    await expect(page.get_by_role("radio", name="List")).to_be_checked()
    await page.get_by_role("radio", name="List").focus()
    await page.keyboard.press("ArrowRight")
    chosen = page.get_by_role("radio", name="Summarize")
    await expect(chosen).to_be_checked()
    await expect(chosen).to_have_accessible_description("The same list, with a summary above it.")
    await expect(page.get_by_text("The same list, with a summary above it.")).to_be_visible()
    assert page.url.endswith("/?mode=summarize")
    await ask(page, "supper dish")
    await page.goto(kitchen.url)
    await expect(page.get_by_role("radio", name="Summarize")).to_be_checked()
    await opened(page, kitchen.url + "?mode=generate")
    await expect(page.get_by_role("radio", name="Answer")).to_be_checked()
    await ask(page, "supper dish")
    await opened(page, kitchen.url + "?mode=nonsense")
    await expect(page.get_by_role("radio", name="Summarize")).to_be_checked()
    await ask(page, "supper dish", "List")
    assert [body["mode"] for body in bodies] == ["summarize", "generate", "list"]


async def test_a_browser_without_storage_has_modes_all_the_same(page: Page, start: Start) -> None:
    kitchen = await start()
    await page.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw new Error('switched off'); } });"
    )
    bodies = asked_by(page)
    await opened(page, kitchen.url)
    await ask(page, "supper dish", "Answer")
    assert [body["mode"] for body in bodies] == ["generate"]


async def test_the_last_question_is_asked_again_for_another_kind_of_answer(page: Page, start: Start) -> None:
    kitchen = await start()
    bodies = asked_by(page)
    await opened(page, kitchen.url)
    again = page.get_by_role("button", name="Ask the last question this way")
    await expect(again).to_be_hidden()
    await ask(page, "supper dish", "List")
    await expect(again).to_be_hidden()
    await page.get_by_role("radio", name="Answer").check()
    await again.click()
    turn = await answered(page)
    await expect(again).to_be_hidden()
    await expect(page.get_by_role("textbox").first).to_be_focused()
    await expect(turn.get_by_test_id("answer")).to_be_visible()
    assert [(body["query"], body["mode"], body["prev"]) for body in bodies] == [
        ("supper dish", "list", []),
        ("supper dish", "generate", []),
    ]
    assert "decontextualized_query" not in bodies[1]


async def test_a_written_answer_stands_once_above_its_sources_and_links_to_them(
    page: Page, start: Start
) -> None:
    kitchen = await start()
    kitchen.says["Synthesize"] = {"answer": WRITTEN, "urls": []}
    await opened(page, kitchen.url)
    turn = await ask(page, "supper dish", "Answer")
    answer = turn.get_by_test_id("answer")
    assert await answer.text_content() == WRITTEN
    assert (await turn.inner_text()).count("That is all.") == 1
    await expect(answer.locator("img")).to_have_count(0)
    assert await page.title() == "Ask"
    await expect(answer).to_have_css("white-space", "pre-wrap")
    await expect(titles(turn)).to_have_text(["Bravo bread", "Charlie cake"])
    await expect(turn.locator(".card-number")).to_have_text(["Source 1", "Source 2"])
    assert await above(answer, turn.get_by_test_id("card").first)
    links = answer.get_by_role("link")
    await expect(links).to_have_text(["[1]", "[2]"])
    for at in range(2):
        source = titles(turn).nth(at).get_by_role("link")
        assert await links.nth(at).get_attribute("href") == await source.get_attribute("href")
        assert await links.nth(at).get_attribute("rel") == "noopener noreferrer"
    await expect(turn.locator(".progress")).to_have_text("Answer ready, 2 sources")
    considered = turn.locator("details.considered")
    await expect(considered.get_by_role("link", name="Alfa soup")).to_be_hidden()
    await considered.get_by_text("Also considered (2)").click()
    await expect(considered.get_by_role("link")).to_have_text(["Alfa soup", "Delta rice"])


async def test_an_answer_that_is_stopped_keeps_what_was_written(page: Page, start: Start) -> None:
    kitchen = await start()
    kitchen.model.piece_delay = 0.1
    kitchen.says["Synthesize"] = {"answer": "Word [1] after word. " * 200, "urls": []}
    await opened(page, kitchen.url)
    await page.get_by_role("radio", name="Answer").check()
    await page.get_by_role("textbox").first.fill("supper dish")
    await page.get_by_role("textbox").first.press("Enter")
    answer = page.get_by_test_id("answer")
    await expect(answer).to_contain_text("Word [1] after word. Word")
    await page.keyboard.press("Escape")
    turn = await answered(page)
    await expect(turn.locator(".progress")).to_have_text("Stopped")
    await expect(answer).to_contain_text("Word [1] after word. Word")
    kitchen.model.piece_delay = 0
    kitchen.says["Synthesize"] = {"answer": "Now whole [1].", "urls": []}
    await turn.get_by_role("button", name="Retry").click()
    await answered(page)
    await expect(answer).to_have_text("Now whole [1].")


async def test_without_a_model_an_answer_is_sentences_with_sources(page: Page, start: Start) -> None:
    kitchen = await start(llm=False)
    await opened(page, kitchen.url)
    turn = await ask(page, "bread", "Answer")
    await expect(turn.get_by_test_id("answer")).to_contain_text("Bravo bread: a supper dish. [1]")
    link = turn.get_by_test_id("answer").get_by_role("link").first
    await expect(link).to_have_attribute("href", "https://trattoria.example/bravo")


async def test_a_summary_stands_above_the_list(page: Page, start: Start) -> None:
    kitchen = await start()
    kitchen.says["Summarize"] = {"summary": f"Bread first. {EVIL}"}
    await opened(page, kitchen.url)
    turn = await ask(page, "supper dish", "Summarize")
    summary = turn.get_by_test_id("summary")
    await expect(summary).to_have_text(f"Bread first. {EVIL}")
    assert await above(summary, turn.get_by_test_id("card").first)
    await expect(titles(turn)).to_have_text(["Bravo bread", "Charlie cake", "Alfa soup", "Delta rice"])
    await expect(turn.locator(".is-awaited")).to_have_count(0)
    kitchen.says["Summarize"] = 500
    turn = await ask(page, "supper dish")
    await expect(turn.get_by_test_id("card")).to_have_count(4)
    await expect(turn.locator(".is-awaited, [data-testid=summary]")).to_have_count(0)


async def test_a_place_given_by_search_is_no_number(page: Page, start: Start) -> None:
    kitchen = await start(llm=False)
    await opened(page, kitchen.url)
    turn = await ask(page, "bread, a supper dish")
    cards = turn.get_by_test_id("card")
    await expect(cards).to_have_count(4)
    await expect(titles(turn).first).to_have_text("Bravo bread")
    for at in range(4):
        await expect(cards.nth(at)).to_contain_text("placed by search")
    await expect(turn.locator("meter, .points")).to_have_count(0)
    assert "100" not in await turn.inner_text()


async def test_an_error_stands_above_the_results_with_a_reference(page: Page, start: Start) -> None:
    kitchen = await start()
    kitchen.says["RankingPrompt"] = 500
    await opened(page, kitchen.url)
    turn = await ask(page, "supper dish")
    error = turn.locator(".is-error")
    await expect(turn.get_by_test_id("card")).to_have_count(4)
    await expect(turn.get_by_test_id("card").first).to_contain_text("placed by search")
    assert await above(error, turn.get_by_test_id("card").first)
    await expect(error).to_contain_text("The language model failed.")
    await expect(error.locator(".reference")).to_have_text(re.compile(r"^Reference: [\w.:~-]{8,}$"))


async def test_a_question_that_is_not_for_the_site_says_why(page: Page, start: Start, tmp_path: Path) -> None:
    folder = prompts(tmp_path, "<description>Dishes</description>")
    kitchen = await start(prompts_dir=folder)
    kitchen.says["DetectIrrelevant"] = {
        "site_is_irrelevant_to_query": True,
        "explanation_for_irrelevance": f"Only dishes here. {EVIL}",
    }
    kitchen.says["RankingPrompt"] = []
    await opened(page, kitchen.url + "?site=trattoria")
    turn = await ask(page, "weather tomorrow for supper")
    await expect(turn.locator("[data-kind=irrelevant]")).to_have_text(f"Only dishes here. {EVIL}")
    await expect(turn.get_by_role("button", name="Change the question")).to_be_visible()
    await expect(turn.locator(".progress")).to_have_text("Not answered here")


def prompts(tmp_path: Path, inside: str, site: str = "trattoria") -> Path:
    folder = tmp_path / "wording"
    folder.mkdir(exist_ok=True)
    (folder / f"{site}.xml").write_text(f'<root><Site ref="{site}">{inside}</Site></root>', "utf-8")
    return folder


async def test_what_is_missing_is_asked_back(page: Page, start: Start, tmp_path: Path) -> None:
    prompt = (
        '<Prompt ref="RequiredInfoPrompt"><promptString>Enough? {request.query}</promptString><returnStruc>'
        '{"required_info_found": "True or False", "user_question": "string"}</returnStruc></Prompt>'
    )
    kitchen = await start(prompts_dir=prompts(tmp_path, f"<Recipe>{prompt}</Recipe>"))
    kitchen.says["RequiredInfo"] = {"required_info_found": False, "user_question": "For how many people?"}
    await opened(page, kitchen.url + "?site=trattoria")
    turn = await ask(page, "supper dish")
    asks = turn.locator("[data-kind=asks]")
    await expect(asks.get_by_text("For how many people?")).to_have_count(1)
    await expect(asks).to_contain_text("Write your answer into the question box.")
    await expect(turn.get_by_test_id("card")).to_have_count(0)


async def test_details_and_comparisons_are_shown_once_with_links(page: Page, start: Start) -> None:
    kitchen = await start(llm=False)
    await opened(page, kitchen.url)
    turn = await ask(page, "tell me about Bravo bread", "List")
    details = turn.locator("[data-kind=details]")
    await expect(details.get_by_role("link", name="Bravo bread")).to_have_attribute(
        "href", "https://trattoria.example/bravo"
    )
    await expect(turn.get_by_text("Bravo bread: a supper dish.")).to_have_count(1)
    await expect(turn.locator(".progress")).to_have_text("Answer ready")
    turn = await ask(page, "compare Alfa soup and Charlie cake")
    comparison = turn.locator("[data-kind=comparison]")
    await expect(comparison.get_by_role("link")).to_have_text(["Alfa soup", "Charlie cake"])
    assert await above(comparison, turn.get_by_test_id("card").first)


async def test_a_menu_is_readable(page: Page, start: Start) -> None:
    kitchen = await start()
    kitchen.says["DetectMultiItem"] = {
        "single_item_type_query": False,
        "item_queries": ["supper soup", "supper cake"],
    }
    chosen = [
        {"category": "Starter", "name": "Alfa soup", "description": "Light.", "why_recommended": "Warm."},
        {"category": "Sweet", "name": "Charlie cake", "description": EVIL, "why_recommended": ""},
    ]
    kitchen.says["EnsemblePrompt"] = {"theme": "By the sea", "items": chosen, "overall_tips": ["Begin early"]}
    await opened(page, kitchen.url)
    turn = await ask(page, "plan a menu for supper")
    menu = turn.locator("[data-kind=ensemble]")
    await expect(menu.get_by_role("heading")).to_have_text("By the sea")
    await expect(menu.get_by_role("link")).to_have_text(["Alfa soup", "Charlie cake"])
    for text in ("Starter", "Why recommended", "Warm.", EVIL, "Overall tips", "Begin early"):
        await expect(menu).to_contain_text(text)
    assert "schema" not in (await menu.inner_text()).lower()
    await expect(menu.locator("img")).to_have_count(0)


async def test_the_focus_stays_with_a_fact_that_was_agreed_to(page: Page, start: Start) -> None:
    kitchen = await start()
    await opened(page, kitchen.url)
    turn = await ask(page, "remember that I love supper dishes")
    await turn.get_by_role("button", name="Remember on this device").focus()
    await page.keyboard.press("Enter")
    await expect(turn.locator(".chip")).to_contain_text("Remembered:")
    assert await page.evaluate("() => document.querySelector('.turn').contains(document.activeElement)")


async def test_example_questions_of_each_site_are_asked_by_a_click(
    page: Page, start: Start, tmp_path: Path
) -> None:
    folder = prompts(tmp_path, "<question>Which bread?</question><question>Supper?</question>")
    prompts(tmp_path, "<question>Which port?</question>", site="towns")
    port = {"@type": "City", "name": "Echo", "url": "https://towns.example/e", "description": "A port."}
    kitchen = await start(prompts_dir=folder, sites={"trattoria": DISHES, "towns": [port]})
    bodies = asked_by(page)
    await opened(page, kitchen.url)
    examples = page.get_by_role("list", name="Example questions").get_by_role("button")
    await expect(examples).to_have_text(["Which port?", "Which bread?", "Supper?"])
    await examples.nth(1).click()
    turn = await answered(page)
    await expect(turn.get_by_role("heading", level=2)).to_have_text("Which bread?")
    assert [body["query"] for body in bodies] == ["Which bread?"]


async def test_only_pictures_that_the_policy_allows_are_tried(page: Page, start: Start) -> None:
    pictures = [
        dish("Alfa soup", image="https://elsewhere.example/a.jpg"),
        dish("Bravo bread", image="https://trattoria.example/b.jpg"),
        dish("Charlie cake", image="/static/icons/favicon.svg"),
        dish("Delta rice"),
    ]
    kitchen = await start(sites={"trattoria": pictures})
    complaints: list[str] = []
    asked: list[str] = []
    page.on("console", lambda said: complaints.append(said.text))
    page.on("request", lambda one: asked.append(one.url) if one.resource_type == "image" else None)
    await opened(page, kitchen.url)
    turn = await ask(page, "supper dish")
    cards = turn.get_by_test_id("card")
    await expect(titles(turn)).to_have_text(["Bravo bread", "Charlie cake", "Alfa soup", "Delta rice"])
    await expect(cards.nth(0).locator(".picture")).to_have_attribute("data-letter", "B")
    await expect(cards.nth(2).locator(".picture")).to_have_count(0)
    await expect(cards.nth(3).locator(".picture")).to_have_count(0)
    edges = "(all) => all.map((one) => one.getBoundingClientRect().left)"
    assert len(set(await turn.locator(".card-body").evaluate_all(edges))) == 1
    assert "https://trattoria.example/b.jpg" in asked
    assert [url for url in asked if "elsewhere" in url] == []
    assert [said for said in complaints if "Content Security Policy" in said] == []


def with_token(page: Page) -> list[Request]:
    """The requests that carry the operator's token anywhere."""
    carrying: list[Request] = []

    def look(one: Request) -> None:
        if ADMIN in f"{one.url} {one.headers} {one.post_data}":
            carrying.append(one)

    page.on("request", look)
    return carrying


async def test_the_operator_sees_checks_problems_and_sites_and_the_token_goes_nowhere_else(
    page: Page, start: Start, tmp_path: Path
) -> None:
    kitchen = await start(prompts_dir=prompts(tmp_path, "<description>Dishes</description>"))
    secret = {"json": {"access": "private"}, "headers": {"Authorization": f"Bearer {ADMIN}"}}
    assert (await kitchen.served.json("PUT", "/sites/vault", **secret))[0] == 200
    carrying = with_token(page)
    await page.goto(f"{kitchen.url}?site=trattoria#operator={ADMIN}")
    panel = page.get_by_role("complementary", name="Operator")
    await expect(panel).to_contain_text("Operator · ready")
    assert page.url == kitchen.url + "?site=trattoria"
    await expect(panel.get_by_role("row")).to_contain_text(["Site", "trattoria", "vault"])
    await expect(panel.get_by_role("row", name="trattoria")).to_contain_text("4")
    await expect(panel).to_contain_text("Language model")

    prompts(tmp_path, '<Thing><Prompt ref="RankingPrompt" tier="best"/></Thing>')
    kitchen.served.app[LIBRARY].look()
    await panel.get_by_role("button", name="Refresh").click()
    await expect(panel).to_contain_text("Operator · degraded")
    await expect(panel.locator("code").first).to_contain_text("trattoria.xml:1:")

    await ask(page, "supper dish")
    kept = (
        "() => JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }, history.state])"
    )
    assert ADMIN not in await page.evaluate(kept)
    assert ADMIN not in await page.content()
    assert {(one.url.removeprefix(kitchen.url), one.method) for one in carrying} == {
        ("ready", "GET"),
        ("sites", "GET"),
    }
    assert all(ADMIN not in one.url for one in carrying)

    await panel.get_by_role("button", name="Close").click()
    await expect(panel).to_be_hidden()
    await page.reload()
    await expect(page.locator("#intro-text")).not_to_be_empty()
    await expect(panel).to_be_hidden()


async def test_an_operator_link_shows_its_panel_on_a_phone(new_page: NewPage, start: Start) -> None:
    kitchen = await start()
    page = await new_page(viewport={"width": 360, "height": 640})
    await page.goto(f"{kitchen.url}#operator={ADMIN}")
    panel = page.get_by_role("complementary", name="Operator")
    await expect(panel.get_by_role("row")).to_contain_text(["Site", "trattoria"])
    await expect(page.locator("#intro-text")).not_to_be_empty()
    await expect(panel).to_be_focused()
    await expect(panel.get_by_text("Operator · ready")).to_be_in_viewport()
    assert await page.evaluate("() => scrollY") == 0
    # Where the page is open already, too.
    await page.get_by_role("textbox").first.focus()
    await page.evaluate(f"() => {{ location.hash = 'operator={ADMIN}'; }}")
    await expect(panel).to_be_focused()
    await expect(panel.get_by_text("Operator · ready")).to_be_in_viewport()


@pytest.mark.parametrize("token", ["wrong", "%E2%82%AC", "%", ""])
async def test_a_wrong_operator_link_says_so(page: Page, start: Start, token: str) -> None:
    kitchen = await start(llm=False)
    await opened(page, kitchen.url)
    await page.goto(f"{kitchen.url}#operator={token}")  # in a tab that has the page already
    panel = page.get_by_role("complementary", name="Operator")
    await expect(panel).to_contain_text("This operator link is not good, or not any more")
    await expect(panel.get_by_role("button", name="Refresh")).to_be_hidden()
    assert page.url == kitchen.url
    await expect(page.get_by_role("textbox").first).to_be_visible()


async def test_an_operator_panel_outlives_a_server_that_is_not_ready(page: Page, start: Start) -> None:
    kitchen = await start(llm=False)
    kitchen.served.app[STATE].busy.add("draining")
    await page.goto(f"{kitchen.url}#operator={ADMIN}")
    panel = page.get_by_role("complementary", name="Operator")
    await expect(panel).to_contain_text("Operator · draining")
    await page.context.set_offline(True)
    await panel.get_by_role("button", name="Refresh").click()
    await expect(panel).to_contain_text("You are offline.")
    await page.context.set_offline(False)
    kitchen.served.app[STATE].busy.clear()
    await panel.get_by_role("button", name="Refresh").click()
    await expect(panel).to_contain_text("Operator · ready")
