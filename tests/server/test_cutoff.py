"""Without a model an answer holds what has to do with the question, and says so where nothing has."""

from __future__ import annotations

from typing import Any

import pytest

from server.keys import RETRIEVER
from tests.conftest import KITCHEN, Frames, Serve, Served, recipe
from tests.fakes.openai_server import Fail, ModelRequest, ScriptedModel
from tests.fakes.sensible_model import tagged_items

NONSENSE = "quantum chromodynamics"
BOTH = {"legs": ["bm25", "use"]}

ITEMS = {
    "en": [
        ("Tofu curry", "A mild vegan curry with tofu, coconut milk and rice."),
        ("Beef stew", "Beef and carrots braised slowly in red wine."),
        ("Lemon tart", "A sharp lemon cream in a short crust."),
        ("City museum", "Paintings by Dutch masters, closed on Mondays."),
        ("Long beach", "A sandy beach for swimming in the sea."),
    ],
    "es": [
        ("Gazpacho andaluz", "Sopa fría de tomate, pepino y ajo, con aceite de oliva. Se sirve en verano."),
        ("Cocido madrileño", "Guiso de garbanzos con carne de ternera, tocino y repollo."),
        ("Crema catalana", "Postre de yemas, leche, canela y limón con azúcar quemado."),
        ("Museo del Prado", "Pinacoteca de Madrid con cuadros de Velázquez, Goya y El Greco."),
        ("Playa de la Concha", "Playa de arena fina con baños de mar y un paseo junto a la bahía."),
    ],
    "it": [
        ("Ribollita", "Zuppa toscana di pane raffermo, cavolo nero, fagioli e verdure."),
        ("Ossobuco", "Stinco di vitello brasato nel vino bianco, servito con risotto allo zafferano."),
        ("Panna cotta", "Dolce al cucchiaio di panna, zucchero e vaniglia, con salsa di lamponi."),
        ("Galleria degli Uffizi", "Museo di Firenze con i quadri di Botticelli e Caravaggio."),
        ("Lago di Garda", "Il lago più grande d'Italia: vela, windsurf e spiagge."),
    ],
    "zh": [
        ("麻婆豆腐", "用嫩豆腐、牛肉末、豆瓣酱和花椒做的川菜，又麻又辣，配米饭吃。"),
        ("清蒸鲈鱼", "鲈鱼加姜葱蒸八分钟，淋上热油和酱油，清淡鲜嫩。"),
        ("绿豆汤", "绿豆加冰糖煮成的甜汤，夏天冰镇后喝，可以解暑。"),
        ("故宫博物院", "位于北京市中心的明清皇宫，收藏书画和瓷器，周一闭馆。"),
        ("黄山", "安徽的名山，以奇松、怪石和云海闻名，可以乘缆车上山看日出。"),
    ],
    "ko": [
        ("김치찌개", "잘 익은 김치와 돼지고기, 두부를 넣고 끓인 매운 찌개로 밥과 함께 먹는다."),
        ("해물파전", "오징어와 새우, 파를 넣어 바삭하게 부친 전이다."),
        ("팥빙수", "곱게 간 얼음에 단팥과 떡을 올린 여름 디저트이다."),
        ("경복궁", "서울에 있는 조선 시대의 궁궐로 수문장 교대식을 볼 수 있고 화요일에 쉰다."),
        ("해운대", "부산의 바닷가로 해수욕장과 야시장이 있다."),
    ],
}
ANSWERED = {
    "en": (("a vegan curry", "Tofu curry"), ("where are paintings", "City museum")),
    "es": (("¿qué hago con garbanzos?", "Cocido madrileño"), ("baño en el mar", "Playa de la Concha")),
    "it": (("zuppa con fagioli", "Ribollita"), ("un dolce con la panna", "Panna cotta")),
    "zh": (("夏天喝的甜汤", "绿豆汤"), ("在哪里看云海和日出", "黄山")),
    "ko": (("김치로 끓인 찌개", "김치찌개"), ("부산 해수욕장", "해운대")),
}
UNANSWERED = {
    "en": (NONSENSE, "show me good running shoes"),
    "es": ("cromodinámica cuántica", "frenos de mi coche"),
    "it": ("cromodinamica quantistica", "dichiarazione dei redditi"),
    "zh": ("量子色动力学", "肺癌治疗方案"),
    "ko": ("양자 색역학", "게임용 노트북 추천"),
}


def things(items: list[tuple[str, str]]) -> list[dict[str, Any]]:
    return [
        {"@type": "Thing", "url": f"https://things.example/{n}", "name": name, "description": text}
        for n, (name, text) in enumerate(items)
    ]


def shown(frames: Frames) -> list[str]:
    return [item["name"] for item in frames.final]


def says_nothing_answers(frames: Frames) -> None:
    assert shown(frames) == []
    assert not frames.items
    assert frames.one("no_results")["reason"] == "below_min_score"
    assert frames.one("complete")["degraded"] is False


async def kitchen(serve: Serve, **tables: Any) -> Served:
    server = await serve(retrieval=BOTH, **tables)
    await server.load("kitchen", KITCHEN)
    return server


@pytest.mark.parametrize("legs", [["bm25", "use"], ["bm25"], ["use"]], ids=["both", "words", "meaning"])
async def test_in_every_language_what_answers_is_shown_and_nothing_else(
    serve: Serve, legs: list[str]
) -> None:
    server = await serve(retrieval={"legs": legs})
    for site, items in ITEMS.items():
        await server.load(site, things(items))
    for site in ITEMS:
        for question, name in ANSWERED[site]:
            found = shown(await server.ask(question, site=site))
            assert found[0] == name, question
            assert len(found) < len(ITEMS[site]), question
        for question in UNANSWERED[site]:
            says_nothing_answers(await server.ask(question, site=site))


async def test_a_mistyped_question_finds_what_it_means(serve: Serve) -> None:
    server = await kitchen(serve)
    assert shown(await server.ask("vegna curri", site="kitchen"))[0] == "Tofu curry"
    assert "Minestrone" in shown(await server.ask("minestrome", site="kitchen"))


async def test_a_question_of_words_that_tell_nothing_shows_what_there_is(serve: Serve) -> None:
    server = await kitchen(serve)
    for question in ("show me something good", "what do you have?"):
        assert len(shown(await server.ask(question, site="kitchen"))) == len(KITCHEN)


async def test_a_follow_up_is_judged_together_with_the_question_it_leans_on(serve: Serve) -> None:
    server = await kitchen(serve)
    before = ["a vegan dish"]
    assert shown(await server.ask("and with coconut?", site="kitchen", prev=before))[0] == "Tofu curry"
    new = "how do I replace the brake pads of my car when they squeak"
    says_nothing_answers(await server.ask(new, site="kitchen", prev=before))


async def test_nothing_found_is_told_apart_from_little_found_in_a_written_answer(serve: Serve) -> None:
    server = await kitchen(serve)
    nothing = await server.ask(NONSENSE, site="kitchen", mode="generate")
    says_nothing_answers(nothing)
    assert not nothing.of("nlws")
    little = await server.ask("stew with quinces", site="kitchen", mode="generate")
    answer = little.one("nlws")
    assert answer["extractive"]
    told = {source["name"] for source in [*answer["items"], *answer["considered"]]}
    assert "Lemon tart" not in told
    assert any(source["name"].endswith("stew") for source in answer["items"])
    assert not little.of("no_results")


async def test_under_a_filter_the_same_holds_of_what_passes_it(serve: Serve) -> None:
    server = await serve(retrieval=BOTH)
    headers = {"Authorization": "Bearer admin-token-of-the-tests"}
    for item, tag in ((KITCHEN[0], "kind:curry"), (KITCHEN[3], "kind:tart")):
        body = {"site": "kitchen", "items": [item], "tags": [tag]}
        status, report = await server.json("POST", "/documents", json=body, headers=headers)
        assert status == 200, report
    assert shown(await server.ask("vegan curry", site="kitchen", tags="kind:curry")) == ["Tofu curry"]
    says_nothing_answers(await server.ask(NONSENSE, site="kitchen", tags="kind:curry"))
    none = await server.ask("vegan curry", site="kitchen", tags="kind:soup")
    assert none.one("no_results")["reason"] == "filters"


async def test_pages_hold_what_answers_once_and_end_with_it(serve: Serve) -> None:
    server = await serve(retrieval=BOTH)
    stews = [recipe(f"s{n}", f"Vegan stew {n}", "A vegan stew of beans.") for n in range(7)]
    others = [recipe(f"o{n}", f"Lemon tart {n}", "A sharp lemon cream in a crust.") for n in range(7)]
    await server.load("kitchen", [*stews, *others])
    asked: dict[str, Any] = {"site": "kitchen", "max_results": 3}
    pages = [await server.ask("vegan stew", start_num=start, **asked) for start in (0, 3, 6)]
    assert [len(shown(page)) for page in pages] == [3, 3, 1]
    assert sorted(name for page in pages for name in shown(page)) == [f"Vegan stew {n}" for n in range(7)]
    assert shown(await server.ask("vegan stew", start_num=9, **asked)) == []


async def test_the_least_score_that_a_client_names_holds_beside_it(serve: Serve) -> None:
    server = await kitchen(serve)
    every = await server.ask("a vegan stew", site="kitchen")
    best = await server.ask("a vegan stew", site="kitchen", min_score=95)
    assert every.final[0]["score"] == 100.0
    assert 0 < len(best.final) < len(every.final) < len(KITCHEN)


async def test_search_alone_shows_whatever_is_nearest(serve: Serve) -> None:
    server = await kitchen(serve)
    status, found = await server.json("POST", "/search", json={"query": NONSENSE, "site": "kitchen"})
    assert status == 200
    assert len({hit["document_id"] for hit in found["results"]}) == len(KITCHEN)


async def test_a_model_judges_everything_that_was_found(serve: Serve, model: ScriptedModel) -> None:
    def answer(request: ModelRequest) -> Any:
        if request.schema_name != "RankingPrompt":
            return {"is_memory_request": False, "memory_request": ""}
        items, _ = tagged_items(request.prompt)
        return [{"tag": item["tag"], "score": 80, "description": item["name"]} for item in items]

    model.answer = answer
    server = await kitchen(serve, model=model)
    frames = await server.ask(NONSENSE, site="kitchen")
    assert len(frames.final) == len(KITCHEN)


async def test_a_model_that_fails_loses_no_item(serve: Serve, model: ScriptedModel) -> None:
    """What it would have said is missing, the answer says so and can be asked for again."""
    model.answer = lambda request: Fail(500)
    server = await kitchen(serve, model=model)
    frames = await server.ask(NONSENSE, site="kitchen")
    assert frames.one("complete")["degraded"] is True
    assert {item["ranking_type"] for item in frames.final} == {"RETRIEVAL"}
    assert len(frames.final) == len(KITCHEN)


async def test_where_a_part_of_the_search_fails_nothing_is_cut_off(serve: Serve) -> None:
    """Half of the signs say nothing of what the other half would have said."""
    server = await serve(retrieval=BOTH)
    await server.load("kitchen", [recipe("tart", "Lemon tart", "A good tart in a short crust.")])
    says_nothing_answers(await server.ask("good running shoes", site="kitchen"))
    await server.app[RETRIEVER]._legs["use"].embedder.close()
    frames = await server.ask("good running shoes for winter", site="kitchen")
    assert frames.one("error")["code"] == "store_failed"
    assert shown(frames) == ["Lemon tart"]
