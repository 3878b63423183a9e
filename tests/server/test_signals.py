"""Newer or nearer items come first at a site whose owner says so, and at no other."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import KITCHEN, Serve, Served, recipe
from tests.fakes.openai_server import ScriptedModel
from tests.fakes.sensible_model import SensibleModel

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC).timestamp()
RECENCY = '<Recency property="dateModified datePublished" halfLife="30d" weight="0.4"/>'
DISTANCE = '<Distance property="geo location" halfDistance="10km" weight="0.4"/>'
TAGGIA, ROME = "43.8447,7.8511", "41.9,12.5"


def article(slug: str, published: Any, text: str = "The festival of flowers in Sanremo.", **more: Any) -> Any:
    dated = {} if published is None else {"datePublished": published}
    url = f"https://news.example/{slug}"
    return {"@type": "NewsArticle", "url": url, "name": slug, "description": text, **dated, **more}


def beach(slug: str, lat: float | None, lon: float | None) -> Any:
    point = {} if lat is None else {"geo": {"@type": "GeoCoordinates", "latitude": lat, "longitude": lon}}
    url = f"https://places.example/{slug}"
    return {"@type": "Beach", "url": url, "name": slug, "description": "A beach of white pebbles.", **point}


NEWS = [
    article("ancient", "2019-02-01"),
    article("yearling", "2025-11-29"),
    article("fresh", "2026-11-28T10:00:00+01:00"),
    article("undated", None),
    article("broken", "last Tuesday"),
    article("coming", "2027-02-01"),
]
UNTOUCHED = ("undated", "broken", "coming")
PLACES = [
    beach("rome", 41.73, 12.28),
    beach("genoa", 44.39, 8.98),
    beach("arma", 43.83, 7.84),
    beach("nowhere", None, None),
]


@pytest.fixture
def wording(tmp_path: Path) -> Path:
    folder = tmp_path / "wording"
    folder.mkdir()
    (folder / "news.xml").write_text(f'<root><Site ref="news">{RECENCY}</Site></root>')
    (folder / "places.xml").write_text(f'<root><Site ref="places"><Place>{DISTANCE}</Place></Site></root>')
    return folder


async def names(server: Served, query: str, **more: Any) -> list[str]:
    return [item["name"] for item in (await server.ask(query, **more)).final]


async def scores(server: Served, query: str, **more: Any) -> dict[str, float]:
    return {item["name"]: item["score"] for item in (await server.ask(query, **more)).final}


async def test_the_newer_wins_where_the_site_says_so(serve: Serve, wording: Path) -> None:
    server = await serve(prompts_dir=wording, clock=lambda: NOW)
    await server.load("news", NEWS)
    await server.load("archive", NEWS)
    dated = [
        name for name in await names(server, "festival of flowers", site="news") if name not in UNTOUCHED
    ]
    assert dated == ["fresh", "yearling", "ancient"]
    told = await scores(server, "festival of flowers", site="news")
    assert {told[name] for name in UNTOUCHED} == {100}
    assert 98 < told["fresh"] < 100
    assert told["ancient"] == pytest.approx(60, abs=0.1)
    without = await scores(server, "festival of flowers", site="archive")
    assert set(without.values()) == {100}


async def test_relevance_is_more_than_news(serve: Serve, wording: Path) -> None:
    server = await serve(prompts_dir=wording, clock=lambda: NOW)
    await server.load("news", [*NEWS, article("weather", "2026-11-29", "Rain, and flowers in the valley.")])
    assert (await names(server, "festival of flowers in Sanremo", site="news"))[-1] == "weather"


async def test_the_clock_decides_what_is_new(serve: Serve, wording: Path) -> None:
    now = [NOW]
    server = await serve(prompts_dir=wording, clock=lambda: now[0])
    await server.load("news", [article("one", "2026-11-29T12:00:00Z")])
    await server.load("archive", [article("one", "2026-11-29T12:00:00Z")])
    for days, expected in ((0, 100), (30, 80), (60, 70), (3000, 60)):
        now[0] = NOW + days * 86_400
        await server.load("news", [article("one", "2026-11-29T12:00:00Z"), article("two", None)])
        told = await scores(server, "festival", site="news")
        assert told["one"] == pytest.approx(expected, abs=0.1), days


async def test_the_nearer_wins_where_the_site_says_so_and_the_asker_says_where(
    serve: Serve, wording: Path
) -> None:
    server = await serve(prompts_dir=wording)
    await server.load("places", PLACES)
    await server.load("elsewhere", PLACES)
    near = await names(server, "pebbles beach", site="places", near=TAGGIA)
    assert near == ["nowhere", "arma", "genoa", "rome"]
    far = await names(server, "pebbles beach", site="places", near=ROME)
    assert far.index("rome") < far.index("genoa") <= far.index("arma")
    for more in ({"site": "places"}, {"site": "elsewhere", "near": TAGGIA}):
        assert set((await scores(server, "pebbles beach", **more)).values()) == {100}


@pytest.mark.parametrize("near", ["Taggia", "91,0", "0,181", "44", [44.4, 8.9], {"lat": 1}])
async def test_a_place_that_is_none_is_refused(serve: Serve, near: Any) -> None:
    server = await serve()
    for body, field in (
        ({"query": "a", "near": near}, "near"),
        ({"query": {"text": "a"}, "context": {"near": near}}, "context.near"),
    ):
        status, answer = await server.json("POST", "/ask", json=body)
        assert (status, (answer.get("error") or {}).get("field", field)) == (400, field)


async def test_the_structured_dialect_and_a_query_string_say_where_too(serve: Serve, wording: Path) -> None:
    server = await serve(prompts_dir=wording)
    await server.load("places", PLACES)
    body = {
        "query": {"text": "pebbles beach"},
        "context": {"near": TAGGIA},
        "prefer": {"streaming": False},
    }
    _, answer = await server.json("POST", "/ask", json=body)
    assert [item["name"] for item in answer["results"]][:2] == ["nowhere", "arma"]
    _, answer = await server.json("GET", f"/ask?query=pebbles+beach&near={TAGGIA}&streaming=false")
    assert [item["name"] for item in answer["results"]][:2] == ["nowhere", "arma"]


async def test_what_is_new_reaches_the_model_from_behind(
    serve: Serve, wording: Path, model: ScriptedModel
) -> None:
    model.answer = SensibleModel()
    old = [article(f"old-{n}", "2019-01-01", "Festival of flowers, festival.") for n in range(12)]
    new = article(
        "new", "2026-11-28", "In Sanremo the festival of flowers begins on the first day of spring."
    )
    server = await serve(prompts_dir=wording, clock=lambda: NOW, model=model)
    await server.load("news", [*old, new])
    await server.load("archive", [*old, new])
    for site, seen in (("news", True), ("archive", False)):
        model.requests.clear()
        await server.ask("festival of flowers", site=site, num_results=10)
        ranking = [r.prompt for r in model.requests if r.schema_name.startswith("RankingPrompt")]
        assert ranking
        assert ("first day of spring" in "".join(ranking)) is seen


async def test_a_models_scores_are_weighed_and_nothing_good_enough_is_lost(
    serve: Serve, wording: Path, model: ScriptedModel
) -> None:
    model.answer = SensibleModel(
        scores={
            "ancient": 90,
            "yearling": 60,
            "fresh": 70,
            "undated": 66,
            "broken": 30,
            "coming": 55,
        }
    )
    server = await serve(prompts_dir=wording, clock=lambda: NOW, model=model)
    await server.load("news", NEWS)
    await server.load("archive", NEWS)
    told = await scores(server, "festival of flowers", site="news")
    assert list(told) == ["fresh", "undated", "coming", "ancient", "yearling"]
    assert told["fresh"] == pytest.approx(
        70 * (1 - 0.4 * (1 - 0.5 ** ((NOW - 1795856400) / 2_592_000))), abs=0.1
    )
    assert (told["undated"], told["ancient"], told["yearling"]) == (66, 54, 51)
    without = await scores(server, "festival of flowers", site="archive")
    assert list(without.items())[:2] == [("ancient", 90), ("fresh", 70)]
    strict = await scores(server, "festival of flowers", site="news", min_score=65)
    assert strict == {"fresh": told["fresh"], "undated": 66, "ancient": 65}


async def test_no_site_lifts_its_items_over_those_of_others(serve: Serve, wording: Path) -> None:
    server = await serve(prompts_dir=wording, clock=lambda: NOW)
    await server.load("news", [article("future", "2999-01-01"), article("fresh", "2026-11-29T12:00:00Z")])
    await server.load("other", [article("plain", None)])
    assert set((await scores(server, "festival of flowers")).values()) == {100}


async def test_pages_of_a_weighed_answer_hold_every_item_once(serve: Serve, wording: Path) -> None:
    server = await serve(prompts_dir=wording, clock=lambda: NOW)
    days = [article(f"day-{n:02}", f"2026-10-{n:02}") for n in range(1, 29)]
    await server.load("news", days)
    seen: list[str] = []
    for start in range(0, 30, 5):
        seen += await names(server, "festival", site="news", num_results=40, max_results=5, start_num=start)
    assert seen == sorted((one["name"] for one in days), reverse=True)


async def test_a_site_that_says_nothing_is_searched_as_before(serve: Serve, wording: Path) -> None:
    plain, weighed = await serve(folder="plain"), await serve(folder="weighed", prompts_dir=wording)
    for server in (plain, weighed):
        await server.load("kitchen", [*KITCHEN, recipe("oil", "Oil", "Oil.", datePublished="1990")])
    assert await scores(plain, "vegan stew", near=TAGGIA) == await scores(weighed, "vegan stew", near=TAGGIA)
