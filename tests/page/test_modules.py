"""The page's modules one by one, run in the browser: reading streams, reading items, building elements."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.async_api import Page

pytestmark = pytest.mark.asyncio(loop_scope="module")

STREAM = (
    "\ufeffretry: 250\n\n"
    ": keep-alive\n\n"
    'id: a.0\ndata: {"n": 1}\n\nid: a.1\ndata: {"n": 2}\n\n'
    "data: 北京 🌍\r\ndata:  two blanks lead\r\n\r\n"
    "data: old\rdata\rdata: line ends\r\r"
    "event: named\ndata:x\nunknown: field\n\n"
    "id: without data\n\n"
    "data: is never ended"
)
EVENTS = [
    {"event": "message", "data": '{"n": 1}', "id": "a.0"},
    {"event": "message", "data": '{"n": 2}', "id": "a.1"},
    {"event": "message", "data": "北京 🌍\n two blanks lead", "id": "a.1"},
    {"event": "message", "data": "old\n\nline ends", "id": "a.1"},
    {"event": "named", "data": "x", "id": "a.1"},
]
READ = """async (pieces) => {
  const { readEvents } = await import("/static/sse.js");
  const body = new ReadableStream({ start(out) {
    for (const piece of pieces) out.enqueue(new Uint8Array(piece));
    out.close();
  } });
  const events = [];
  for await (const event of readEvents(new Response(body))) events.push(event);
  return events;
}"""


async def read(shell: Page, pieces: list[bytes]) -> Any:
    return await shell.evaluate(READ, [list(piece) for piece in pieces])


async def test_events_are_the_same_wherever_the_bytes_are_cut(shell: Page) -> None:
    whole = STREAM.encode()
    assert await read(shell, [whole]) == EVENTS
    assert await read(shell, [whole[at : at + 1] for at in range(len(whole))]) == EVENTS
    cuts = await shell.evaluate(
        f"""async (whole) => {{
          const read = {READ};
          const all = [];
          for (let at = 1; at < whole.length; at += 1)
            all.push(JSON.stringify(await read([whole.slice(0, at), whole.slice(at)])));
          return all;
        }}""",
        list(whole),
    )
    assert len(cuts) == len(whole) - 1
    assert {cut: json.loads(cut) for cut in set(cuts)} == {cuts[0]: EVENTS}


async def test_line_breaks_and_blanks_in_a_message_arrive_as_sent(shell: Page) -> None:
    text = "rows:\n  x = 1\n\nend\r\n\u2028 🌍"
    events = await read(shell, [f"data: {json.dumps({'text': text}, ensure_ascii=False)}\n\n".encode()])
    assert [json.loads(event["data"])["text"] for event in events] == [text]


async def test_leaving_the_loop_closes_the_connection(shell: Page) -> None:
    cancelled = await shell.evaluate(
        """async () => {
          const { readEvents } = await import("/static/sse.js");
          let cancelled = false;
          const body = new ReadableStream({
            start(out) { out.enqueue(new TextEncoder().encode("data: 1\\n\\ndata: 2\\n\\n")); },
            cancel() { cancelled = true; },
          });
          for await (const _ of readEvents(new Response(body))) break;
          return cancelled;
        }"""
    )
    assert cancelled


async def item(shell: Page, schema: Any, name: str = "It") -> Any:
    return await shell.evaluate(
        """async ([schema, name]) => {
          const { readItem } = await import("/static/schema.js");
          return readItem(schema, name);
        }""",
        [schema, name],
    )


RECIPE = {
    "@type": ["NewsArticle", "Recipe"],
    "name": "Farinata",
    "totalTime": "PT4H30M",
    "recipeYield": ["6", "6 servings"],
    "aggregateRating": [{"ratingValue": "4.62", "reviewCount": "1203"}],
    "image": [{"@type": "ImageObject", "url": ["https://example.org/a.jpg"]}],
}
RECIPE_READ = {
    "type": "Recipe",
    "image": "https://example.org/a.jpg",
    "facts": ["4 h 30 min", "6 servings", "4.6 out of 5, 1,203 reviews"],
}


@pytest.mark.parametrize(
    "schema",
    [
        RECIPE,
        [RECIPE],
        [[{"@type": "WebPage", "name": "Farinata"}, RECIPE]],
        {"@context": "https://schema.org", "@graph": [{"@type": "BreadcrumbList"}, RECIPE]},
        {"@type": "WebPage", "mainEntity": RECIPE},
        json.dumps(RECIPE),
    ],
    ids=["object", "list", "nested list", "graph", "main entity", "string"],
)
async def test_an_item_is_read_in_whatever_wrapping_it_comes(shell: Page, schema: Any) -> None:
    assert await item(shell, schema, "Farinata") == RECIPE_READ


@pytest.mark.parametrize(
    ("schema", "type_", "facts"),
    [
        (
            {
                "@type": "City",
                "name": "Camogli",
                "address": {"addressLocality": "Camogli", "addressRegion": "Liguria", "addressCountry": "IT"},
                "containedInPlace": {"@type": "AdministrativeArea", "name": "Province of Genova"},
            },
            "City",
            ["Province of Genova", "Liguria, IT"],
        ),
        (
            {
                "@type": "http://schema.org/Product",
                "brand": {"name": "Iron"},
                "offers": [
                    {
                        "price": "1,249.50",
                        "priceCurrency": "EUR",
                        "availability": "https://schema.org/InStock",
                    }
                ],
            },
            "Product",
            ["€1,249.50", "Iron", "In stock"],
        ),
        ({"@type": "Offer", "price": 5, "priceCurrency": "no such"}, "Offer", ["5 no such"]),
        (
            {"@type": "Product", "offers": {"lowPrice": 2, "highPrice": 9.5, "priceCurrency": "USD"}},
            "Product",
            ["$2.00 – $9.50"],
        ),
        (
            {"@type": "MusicEvent", "startDate": "2027-09-18T23:30:00+02:00", "location": {"name": "Hall"}},
            "MusicEvent",
            ["Sep 18, 2027, 11:30 PM", "Hall"],
        ),
        (
            {
                "@type": "Movie",
                "datePublished": "1999-03-31",
                "director": [{"name": "A"}, "B"],
                "duration": "PT136M",
            },
            "Movie",
            ["1999", "A, B", "2 h 16 min"],
        ),
        (
            {"@type": "Gizmo", "aggregateRating": {"ratingValue": 3, "bestRating": 10, "ratingCount": 1}},
            "Gizmo",
            ["3 out of 10, 1 review"],
        ),
    ],
    ids=["city", "product", "odd currency", "price range", "event", "movie", "unknown type"],
)
async def test_each_type_shows_its_own_facts(shell: Page, schema: Any, type_: str, facts: list[str]) -> None:
    read = await item(shell, schema)
    # Which blank stands before "PM" differs between versions of the browser.
    assert (read["type"], [fact.replace("\u202f", " ") for fact in read["facts"]]) == (type_, facts)


DEEP: Any = "x"
for _ in range(40):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "schema",
    [
        None,
        "",
        "{broken",
        7,
        [],
        [None],
        {},
        {"@type": 5},
        {"@type": "Recipe", "aggregateRating": "5", "image": DEEP},
        {"@type": "Recipe", "recipeYield": {"a": {"b": {}}}, "totalTime": [[]]},
        {"@type": "<b>"},
        {"@graph": None},
    ],
    ids=range(12),
)
async def test_a_broken_item_is_shown_plainly_and_never_throws(shell: Page, schema: Any) -> None:
    read = await item(shell, schema)
    assert read["type"] in {"Thing", "Recipe"}
    assert (read["image"], read["facts"]) == (None, [])


@pytest.mark.parametrize(
    ("address", "link"),
    [
        ('https://example.org/a b?q="x"', "https://example.org/a%20b?q=%22x%22"),
        (" http://example.org ", "http://example.org/"),
        ("javascript:alert(1)", None),
        ("java\nscript:alert(1)", None),
        ("data:text/html,x", None),
        ("file:///etc/passwd", None),
        ("/relative", None),
        ("", None),
        (None, None),
    ],
)
async def test_only_web_addresses_become_links(shell: Page, address: str | None, link: str | None) -> None:
    shown = await shell.evaluate(
        """async (address) => {
          const { webAddress } = await import("/static/dom.js");
          return webAddress(address)?.href ?? null;
        }""",
        address,
    )
    assert shown == link


async def test_putting_in_order_moves_nodes_around_the_one_that_has_the_focus(shell: Page) -> None:
    result = await shell.evaluate(
        """async () => {
          const { arrange, el } = await import("/static/dom.js");
          const list = el("div");
          document.body.append(list);
          const nodes = ["a", "b", "c", "d", "e"].map((id) => el("button", { id }));
          list.append(...nodes);
          nodes[1].focus();
          let blurs = 0;
          nodes[1].addEventListener("blur", () => { blurs += 1; });
          const orders = ["edcba", "bacde", "acdeb"].map((order) => {
            arrange(list, Array.from(order, (id) => nodes.find((node) => node.id === id)));
            return Array.from(list.children, (node) => node.id).join("");
          });
          const same = nodes.every((node) => node.isConnected);
          return { orders, blurs, focus: document.activeElement.id, same };
        }"""
    )
    assert result == {"orders": ["edcba", "bacde", "acdeb"], "blurs": 0, "focus": "b", "same": True}


async def test_the_status_line_says_the_latest_and_not_more_than_one_thing_in_two_seconds(
    shell: Page,
) -> None:
    said = await shell.evaluate(
        """async () => {
          const { Announcer } = await import("/static/announcer.js");
          const line = document.createElement("p");
          const waiting = [];
          const setTimeout = window.setTimeout;
          window.setTimeout = (later, ms) => waiting.push([later, ms]);
          const announcer = new Announcer(line);
          const said = [];
          for (const text of ["Searching", "1 result", "2 results"]) {
            announcer.say(text);
            said.push(line.textContent);
          }
          const [later, ms] = waiting.shift();
          later();
          window.setTimeout = setTimeout;
          return [...said, ms, line.textContent];
        }"""
    )
    assert said == ["Searching", "Searching", "Searching", 2000, "2 results"]


async def test_the_end_of_an_answer_decides_which_cards_stay_and_in_what_order(shell: Page) -> None:
    shown = await shell.evaluate(
        """async () => {
          const { CardList } = await import("/static/cards.js");
          const list = new CardList({ nameSites: true });
          document.body.append(list.element);
          const item = (site, id, score) => ({ site, document_id: id, score, name: `${site} ${id}` });
          list.take([item("a", "1", 60), item("a", "2", 55), item("b", "1", 70), item("a", "3", 90)]);
          const first = list.element.firstElementChild;
          list.take([{ ...item("a", "2", 95), description: "better" }]);
          const names = () => Array.from(list.element.querySelectorAll("h3"), (title) => title.textContent);
          const streaming = list.shown.map(({ title }) => title);
          list.settle(["2", "1", "1"]);
          const kept = Array.from(list.element.children).includes(first);
          return { streaming, settled: names(), kept, shown: list.shown.map(({ title }) => title) };
        }"""
    )
    assert shown == {
        "streaming": ["a 2", "a 3", "b 1", "a 1"],
        "settled": ["a 2", "b 1", "a 1"],
        "kept": False,
        "shown": ["a 2", "b 1", "a 1"],
    }


async def test_the_address_of_a_script_is_shown_without_a_link(shell: Page) -> None:
    shown = await shell.evaluate(
        """async () => {
          const { CardList } = await import("/static/cards.js");
          const list = new CardList({ nameSites: false });
          const image = { "@type": "Thing", image: "javascript:alert(1)" };
          list.take([{ document_id: "1", name: "Name", url: "javascript:alert(1)", schema_object: image }]);
          const { element } = list;
          return [element.querySelectorAll("a, img").length, element.querySelector("h3").textContent];
        }"""
    )
    assert shown == [0, "Name"]


async def test_an_answer_grows_once_a_frame_and_keeps_what_is_written(shell: Page) -> None:
    grown = await shell.evaluate(
        """async () => {
          const { AnswerText } = await import("/static/answer.js");
          const answer = new AnswerText();
          document.body.append(answer.element);
          const frames = [];
          const { requestAnimationFrame } = window;
          window.requestAnimationFrame = (draw) => frames.push(draw);
          const seen = [];
          for (const piece of ["\\n One", " line\\n", "\\n", "two  [", "1] [", "7]"]) answer.add(piece);
          seen.push([answer.element.textContent, frames.length]);
          frames.shift()();
          const first = answer.element.firstChild;
          getSelection().selectAllChildren(answer.element);
          getSelection().setBaseAndExtent(first, 0, first, 3);
          for (let n = 0; n < 200; n += 1) {
            answer.add(` word${n}`);
            if (n % 2) frames.shift()();
          }
          window.requestAnimationFrame = requestAnimationFrame;
          const streamed = answer.element.textContent;
          const source = { n: 1, url: "https://example.org/1", name: "One", description: "A line" };
          answer.settle(streamed, [source]);
          seen.push([getSelection().toString(), answer.element.firstChild === first, frames.length]);
          const [link] = answer.element.querySelectorAll("a");
          return {
            seen, start: streamed.slice(0, 30), end: streamed.slice(-15),
            same: answer.element.textContent === streamed,
            link: [link.textContent, link.getAttribute("href"), link.rel, link.title],
            links: answer.element.querySelectorAll("a").length,
          };
        }"""
    )
    assert grown == {
        "seen": [["", 1], ["One", True, 0]],
        "start": "One line\n\ntwo  [1] [7] word0 w",
        "end": "word198 word199",
        "same": True,
        "link": ["[1]", "https://example.org/1", "noopener noreferrer", "One: A line"],
        "links": 1,
    }


async def test_the_whole_answer_holds_where_the_pieces_say_something_else(shell: Page) -> None:
    texts = await shell.evaluate(
        """async () => {
          const { AnswerText } = await import("/static/answer.js");
          const answer = new AnswerText();
          answer.add("Cut in the");
          const script = { n: 2, url: "javascript:alert(1)" };
          answer.settle("Whole [2] and [2].", [script, { n: 1, url: "https://a.example" }]);
          const bad = [answer.element.textContent, answer.element.children.length];
          answer.settle("Whole [2] and [2].", [{ n: 2, url: "https://b.example/x" }]);
          answer.settle("Whole [2] and [2].", [{ n: 2, url: "https://b.example/x" }]);
          return [bad, answer.element.textContent, answer.element.children.length];
        }"""
    )
    assert texts == [["Whole [2] and [2].", 0], "Whole [2] and [2].", 2]


async def test_a_question_back_offers_its_options_as_answers(shell: Page) -> None:
    told = await shell.evaluate(
        """async () => {
          const { askBlock } = await import("/static/structures.js");
          const sent = [];
          const block = askBlock({
            message: "Where?",
            questions: [
              { id: "1", text: "Where?", type: "choice", options: ["Nervi", "<b>Boccadasse</b>", "", 7] },
              { id: "2", text: "How much?", type: "choice", options: ["Little"] }, null,
            ],
          }, (answer) => sent.push(answer));
          const buttons = [...block.querySelectorAll("button")];
          buttons[1].click();
          const labels = buttons.map((one) => one.textContent);
          return [labels, sent, block.querySelectorAll("b").length, block.textContent];
        }"""
    )
    assert told == [
        ["Nervi", "<b>Boccadasse</b>", "Little"],
        ["<b>Boccadasse</b>"],
        0,
        "Where?Nervi<b>Boccadasse</b>How much?Little",
    ]


@pytest.mark.parametrize(
    ("value", "text", "links"),
    [
        ("plain\ntext", "plain\ntext", []),
        (["a", 2, True], "a2Yes", []),
        ({"why_recommended": "warm", "schema_object": {"x": 1}}, "Why recommendedwarm", []),
        ({"name": "N", "url": "https://n.example/", "score": 3, "description": "d"}, "Nd", ["https://n.example/"]),
        ({"name": "N", "url": "javascript:alert(1)"}, "N", []),
        ("https://n.example/", "https://n.example/", ["https://n.example/"]),
        ({"cookTime": "5 min", "url": "https://n.example/"}, "Cook time5 minUrlhttps://n.example/", ["https://n.example/"]),
        ({"a": None, "b": "", "c": [], "d": {}}, None, []),
        (DEEP, None, []),
        (None, None, []),
    ],
)  # fmt: skip
async def test_a_value_of_any_shape_is_readable(
    shell: Page, value: Any, text: str | None, links: list[str]
) -> None:
    shown = await shell.evaluate(
        """async (value) => {
          const { rendered } = await import("/static/structures.js");
          const made = rendered(value);
          const links = [...(made?.querySelectorAll("a") ?? [])];
          return [made?.textContent ?? null, links.map((link) => link.href)];
        }""",
        value,
    )
    assert shown == [text, links]


async def test_sources_stand_in_the_order_of_their_numbers(shell: Page) -> None:
    shown = await shell.evaluate(
        """async () => {
          const { CardList } = await import("/static/cards.js");
          const list = new CardList({ nameSites: false });
          list.take([{ document_id: "old", name: "Old", score: 99 }]);
          const source = (n, id) => ({ n, document_id: id, name: `Source ${n}`, url: "https://a.example" });
          list.showSources([source(3, "a"), source(1, "b"), source(12, "c")]);
          list.settle(["c", "a"]);
          return [list.shown.map(({ title }) => title), list.element.getAttribute("aria-label")];
        }"""
    )
    assert shown == [["Source 1", "Source 3", "Source 12"], "Sources"]


async def test_a_fact_that_nobody_can_forget_has_no_button(shell: Page) -> None:
    shown = await shell.evaluate(
        """async () => {
          const { memoriesList } = await import("/static/memory.js");
          const items = [{ text: "I love <b>rice</b>" }, { memory_id: "m1", text: "my oven is small" }];
          const list = memoriesList({ items: [...items, { memory_id: "m2" }] }, {});
          const text = (line) => line.querySelector("p").textContent;
          const label = (line) => line.querySelector("button")?.getAttribute("aria-label") ?? null;
          return Array.from(list.querySelectorAll("li"), (line) => [text(line), label(line)]);
        }"""
    )
    assert shown == [
        ["I love <b>rice</b>", None],
        ["my oven is small", "Forget: my oven is small"],
    ]


async def test_what_the_server_says_of_its_settings_is_not_told_to_visitors(shell: Page) -> None:
    told = await shell.evaluate(
        """async () => {
          const { explain } = await import("/static/texts.js");
          const failure = (code) => ({ code, message: "`llm.api_key` in askable.toml" });
          const codes = ["config", "store_mismatch", "model_refused", "load_failed"];
          return codes.map((code) => explain(failure(code)));
        }"""
    )
    assert [one["code"] for one in told if "llm.api_key" in one["what"] + one["todo"]] == []
    assert all("tell whoever runs this site" in one["todo"] for one in told)
