"""Questions that are no search: details of one item, two compared, several kinds put together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from core.messages import Summary
from core.query import Query
from core.tools import Kit, ToolAnswer, all_tools
from tests.conftest import ADMIN, KITCHEN, Frames, Serve, Served
from tests.fakes.openai_server import Fail, Hang, ModelRequest, ScriptedModel
from tests.fakes.sensible_model import SensibleModel, tagged_items, values_of

DETAILS = {"item_details_query": True, "item_title": "Minestrone", "details_being_asked": "the vegetables"}
EXTRACTED = {"item_name": "Minestrone", "requested_details": "Beans and pasta.", "additional_context": ""}
COMPARISON = {
    "comparison_query": True,
    "item1_name": "Beef stew",
    "item2_name": "Chickpea stew",
    "details_requested": "time",
}
DINNER = {"single_item_type_query": False, "item_queries": ["vegan stew with chickpeas", "lemon tart"]}


def asked(model: ScriptedModel, *refs: str) -> list[ModelRequest]:
    return [one for one in model.requests if one.schema_name in refs]


async def kitchen(serve: Serve, model: ScriptedModel | None, **more: Any) -> Served:
    server = await serve(model=model, **more)
    await server.load("kitchen", KITCHEN)
    return server


def names(frames: Frames) -> list[str]:
    return [item["name"] for item in frames.final]


# ---------------------------------------------------------------- details


async def test_a_question_about_a_named_item_is_answered_from_it_and_nothing_is_ranked(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await kitchen(serve, model)
    model.answer = SensibleModel(
        replies={"DetectQueryTypePrompt": DETAILS, "ExtractItemDetailsPrompt": EXTRACTED}
    )
    frames = await server.ask("what vegetables are in the minestrone?", site="kitchen")
    selected = frames.one("tool_selection")
    assert (selected["selected_tool"], selected["score"]) == ("details", 100)
    assert selected["parameters"] == {"item_name": "Minestrone", "details_requested": "the vegetables"}
    details = frames.one("item_details")
    assert (details["name"], details["details"]) == ("Minestrone", "Beans and pasta.")
    assert details["schema_object"]["@type"] == "Recipe"
    assert names(frames) == ["Minestrone"]
    assert frames.final[0]["document_id"] == details["document_id"]
    (extract,) = asked(model, "ExtractItemDetailsPrompt")
    assert values_of(extract.prompt, "request.details_requested") == ["the vegetables"]
    assert not asked(model, "RankingPrompt", "ItemMatchingPrompt")
    assert len(model.requests) == 3  # with the memory's


async def test_a_name_that_no_item_has_just_so_is_matched_by_the_model(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await kitchen(serve, model)

    def matched(request: ModelRequest) -> list[dict[str, Any]]:
        items, _ = tagged_items(request.prompt)
        return [
            {"tag": one["tag"], "score": 90 if "Minestrone" in str(one) else 20, "item_details": ""}
            for one in items
        ]

    model.answer = SensibleModel(
        replies={
            "DetectQueryTypePrompt": {**DETAILS, "item_title": "vegetable soup"},
            "ItemMatchingPrompt": matched,
            "ExtractItemDetailsPrompt": EXTRACTED,
        }
    )
    frames = await server.ask("tell me more about the vegetable soup", site="kitchen")
    assert (frames.one("item_details")["name"], frames.one("item_details")["score"]) == ("Minestrone", 90)
    assert len(asked(model, "ItemMatchingPrompt")) == 1


async def test_what_is_no_item_here_is_searched_for_after_all(serve: Serve, model: ScriptedModel) -> None:
    server = await kitchen(serve, model)
    model.answer = SensibleModel(replies={"DetectQueryTypePrompt": {**DETAILS, "item_title": "vegan paella"}})
    frames = await server.ask("tell me more about vegan stew", site="kitchen")
    assert [one["selected_tool"] for one in frames.of("tool_selection")] == ["details", "search"]
    assert "Chickpea stew" in names(frames)
    assert not frames.one("complete")["degraded"]


@pytest.mark.parametrize("empty", [{}, [], " ", "{}", "[ ]"])
async def test_details_with_nothing_in_them_are_none(serve: Serve, model: ScriptedModel, empty: Any) -> None:
    server = await kitchen(serve, model)
    replies = {
        "DetectQueryTypePrompt": DETAILS,
        "ExtractItemDetailsPrompt": {**EXTRACTED, "requested_details": empty},
    }
    model.answer = SensibleModel(replies=replies)
    frames = await server.ask("what vegetables are in the minestrone?", site="kitchen")
    assert frames.one("error")["code"] == "model_reply"
    assert not frames.of("item_details")
    assert "Minestrone" in names(frames)


async def test_details_and_comparisons_by_points_keep_their_shape(serve: Serve, model: ScriptedModel) -> None:
    server = await kitchen(serve, model)
    points = {"beans": "white", "pasta": ["short", "dry"]}
    replies = {
        "DetectQueryTypePrompt": DETAILS,
        "ExtractItemDetailsPrompt": {**EXTRACTED, "requested_details": points},
        "DetectComparisonPrompt": COMPARISON,
        "CompareItemsPrompt": {"comparison": points},
    }
    model.answer = SensibleModel(replies=replies)
    frames = await server.ask("what vegetables are in the minestrone?", site="kitchen")
    assert frames.one("item_details")["details"] == points
    frames = await server.ask("compare the beef stew and the chickpea stew", site="kitchen")
    assert frames.one("compare_items")["comparison"] == points


async def test_a_question_that_only_looks_like_one_is_a_search(serve: Serve, model: ScriptedModel) -> None:
    server = await kitchen(serve, model)
    model.answer = SensibleModel()
    frames = await server.ask("which minestrone is there?", site="kitchen")
    assert len(asked(model, "DetectQueryTypePrompt")) == 1
    assert not frames.of("tool_selection")
    assert "Minestrone" in names(frames)


@pytest.mark.parametrize("query", ["vegan stew with chickpeas", "minestrone", "soup with beans for two"])
async def test_a_plain_search_asks_for_no_tool(serve: Serve, model: ScriptedModel, query: str) -> None:
    server = await kitchen(serve, model)
    model.answer = SensibleModel()
    frames = await server.ask(query, site="kitchen")
    assert {one.schema_name for one in model.requests} == {"DetectMemoryRequestPrompt", "RankingPrompt"}
    assert not frames.of("tool_selection")


@pytest.mark.parametrize(
    "more", [{"mode": "summarize"}, {"mode": "generate"}, {"start_num": 1}, {"tool": "search"}]
)
async def test_no_tool_is_chosen_for_other_modes_pages_or_against_the_clients_word(
    serve: Serve, model: ScriptedModel, more: dict[str, Any]
) -> None:
    server = await kitchen(serve, model)
    model.answer = SensibleModel(replies={"DetectQueryTypePrompt": DETAILS})
    frames = await server.ask("what vegetables are in the minestrone?", site="kitchen", **more)
    assert not asked(model, "DetectQueryTypePrompt")
    assert not frames.of("item_details")


# ---------------------------------------------------------------- compare


async def test_two_named_items_are_compared(serve: Serve, model: ScriptedModel) -> None:
    server = await kitchen(serve, model)
    model.answer = SensibleModel(
        replies={
            "DetectComparisonPrompt": COMPARISON,
            "CompareItemsPrompt": {"comparison": "Beef is slower."},
        }
    )
    frames = await server.ask("compare the beef stew and the chickpea stew", site="kitchen")
    compared = frames.one("compare_items")
    assert compared["comparison"] == "Beef is slower."
    assert (compared["item1"]["name"], compared["item2"]["name"]) == ("Beef stew", "Chickpea stew")
    (request,) = asked(model, "CompareItemsPrompt")
    (told,) = values_of(request.prompt, "request.answers")
    assert "red wine" in told
    assert "chickpeas" in told
    assert "coconut" not in told
    assert names(frames) == ["Beef stew", "Chickpea stew"]


async def test_the_first_two_are_the_first_two_that_were_shown(serve: Serve, model: ScriptedModel) -> None:
    server = await kitchen(serve, model)
    shown = [{"title": one["name"], "url": one["url"]} for one in (KITCHEN[3], KITCHEN[0], KITCHEN[1])]
    model.answer = SensibleModel(
        replies={
            "DetectComparisonPrompt": {**COMPARISON, "item1_name": "", "item2_name": ""},
            "CompareItemsPrompt": {"comparison": "One is sweet."},
        }
    )
    frames = await server.ask("compare the first two", site="kitchen", prev=["dishes"], last_ans=shown)
    compared = frames.one("compare_items")
    assert (compared["item1"]["name"], compared["item2"]["name"]) == ("Lemon tart", "Tofu curry")
    (rewriting,) = asked(model, "PrevQueryDecontextualizer")
    (told,) = values_of(rewriting.prompt, "request.prevAnswers")
    assert told.index("Lemon tart") < told.index("Tofu curry") < told.index("Beef stew")


async def test_a_stored_conversation_gives_the_items_that_were_shown(serve: Serve) -> None:
    server = await kitchen(
        serve, None, auth={"api_keys": [{"key": "k" * 32, "roles": ["read", "act-as"], "name": "app"}]}
    )
    await server.json(
        "PUT", "/sites/kitchen", json={"access": "public"}, headers={"Authorization": f"Bearer {ADMIN}"}
    )
    person = {"Authorization": f"Bearer {'k' * 32}", "X-User-Id": "anna"}
    first = await server.ask("vegan stew", site="kitchen", conversation_id="talk", headers=person)
    second = await server.ask("compare the first two", site="kitchen", conversation_id="talk", headers=person)
    compared = second.one("compare_items")
    assert [compared["item1"]["name"], compared["item2"]["name"]] == names(first)[:2]


# ---------------------------------------------------------------- without a model


def page(slug: str, name: str, description: str, body: str, price: str) -> dict[str, Any]:
    """An item as a page gives it: the words of the page stand behind those of its object."""
    return {
        "@type": "Product",
        "name": name,
        "url": f"https://shop.example/{slug}",
        "description": description,
        "keywords": f"{name}, shop",
        "offers": {"@type": "Offer", "price": price, "priceCurrency": "EUR"},
        "text": f"{name}\n{description}\n{body}",
    }


SHOP = [
    page(
        "fox", "Fox 2 tent", "Light, for two people. It weighs 1.9 kg.", "Pitch the Fox 2 tent alone.", "289"
    ),
    page("owl", "Owl 3 winter tent", "A dome with skirts. It stands storms.", "Snow slides off.", "649"),
    page("lepre", "Scarpe Lepre", "Di cuoio cerato. Per sentieri.", "Le scarpe Lepre sono cucite.", "219"),
    page("lu", "云雀炉头", "它只有七十克重。三分钟烧开一升水。", "云雀炉头可以折叠。", "199"),
]


@pytest.mark.parametrize(
    ("question", "details"),
    [
        ("Tell me more about Fox 2 tent", "Light, for two people. It weighs 1.9 kg.\nOffer: 289 EUR"),
        ("parlami delle Scarpe Lepre", "Di cuoio cerato. Per sentieri.\nOffer: 219 EUR"),
        ("介绍云雀炉头", "它只有七十克重。三分钟烧开一升水。\nOffer: 199 EUR"),
        (
            "More about the Owl 3 winter tent and snow",
            "Snow slides off.\nA dome with skirts. It stands storms.\nOffer: 649 EUR",
        ),
    ],
)
async def test_details_without_a_model_describe_the_item_and_tell_its_facts(
    serve: Serve, question: str, details: str
) -> None:
    server = await serve()
    await server.load("shop", SHOP)
    frames = await server.ask(question, site="shop")
    told = frames.one("item_details")
    assert told["details"] == details
    assert [item["name"] for item in frames.final] == [told["name"]]
    assert frames.final[0]["description"] == details.rsplit("\n", 1)[0]


async def test_a_comparison_without_a_model_sets_descriptions_and_facts_side_by_side(serve: Serve) -> None:
    server = await serve()
    await server.load("shop", SHOP)
    frames = await server.ask("Compare Fox 2 tent and Owl 3 winter tent", site="shop")
    assert frames.one("compare_items")["comparison"] == (
        "Fox 2 tent: Light, for two people. It weighs 1.9 kg.\nOffer: 289 EUR\n\n"
        "Owl 3 winter tent: A dome with skirts. It stands storms.\nOffer: 649 EUR"
    )


async def test_cards_say_more_of_an_item_than_its_name(serve: Serve) -> None:
    server = await serve()
    await server.load("shop", SHOP)
    for question in ("Fox 2 tent", "Owl 3 winter tent", "Scarpe Lepre", "云雀炉头"):
        first = (await server.ask(question, site="shop")).final[0]
        assert first["name"] == question
        assert first["description"] == next(one["description"] for one in SHOP if one["name"] == question)


# ---------------------------------------------------------------- ensemble


async def test_several_kinds_are_searched_ranked_and_put_together_from_stored_items_only(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await kitchen(serve, model)
    invented = {"category": "drink", "name": "Chateau Nowhere", "url": "https://nowhere.example/wine"}
    chosen = [
        {"category": "main", "name": "my stew", "url": "https://kitchen.example/chickpea-stew"},
        invented,
        {"category": "dessert", "name": "LEMON tart", "url": "", "why_recommended": "light"},
        {"category": "again", "name": "Lemon tart", "url": "https://kitchen.example/lemon-tart"},
    ]
    model.answer = SensibleModel(
        replies={
            "DetectMultiItemTypeQueryPrompt": DINNER,
            "EnsemblePrompt": {"theme": "A dinner.", "items": chosen, "overall_tips": ["Start early."]},
        }
    )
    frames = await server.ask("a menu of a vegan stew and a tart", site="kitchen")
    told = frames.one("ensemble_result")["result"]["recommendations"]
    assert (told["theme"], told["overall_tips"]) == ("A dinner.", ["Start early."])
    assert [(one["category"], one["name"]) for one in told["items"]] == [
        ("main", "Chickpea stew"),
        ("dessert", "Lemon tart"),
    ]
    assert told["items"][1]["url"] == "https://kitchen.example/lemon-tart"
    assert names(frames) == ["Chickpea stew", "Lemon tart"]
    assert len(asked(model, "RankingPrompt")) == 2
    assert len(model.requests) <= 8


async def test_many_parts_stay_within_the_calls_of_a_question(serve: Serve, model: ScriptedModel) -> None:
    server = await kitchen(serve, model)
    parts = {"single_item_type_query": False, "item_queries": [f"stew number {n}" for n in range(9)]}
    model.answer = SensibleModel(
        replies={
            "DetectMultiItemTypeQueryPrompt": parts,
            "EnsemblePrompt": {"theme": "", "items": [{"name": "Beef stew"}], "overall_tips": []},
        }
    )
    frames = await server.ask("a menu of many stews", site="kitchen", prev=["soup"])
    assert frames.one("ensemble_result")
    assert len(model.requests) <= 8


async def test_an_ensemble_of_nothing_stored_fails_by_name_and_is_a_search(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await kitchen(serve, model)
    model.answer = SensibleModel(
        replies={
            "DetectMultiItemTypeQueryPrompt": DINNER,
            "EnsemblePrompt": {"theme": "", "items": [{"name": "Chateau Nowhere"}], "overall_tips": []},
        }
    )
    frames = await server.ask("a menu of a vegan stew and a tart", site="kitchen")
    assert not frames.of("ensemble_result")
    assert frames.one("error")["code"] == "model_reply"
    assert frames.one("complete")["degraded"]
    assert names(frames)


# ---------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("query", "chosen", "reply", "run"),
    [
        (
            "what vegetables are in the minestrone?",
            "DetectQueryTypePrompt",
            DETAILS,
            "ExtractItemDetailsPrompt",
        ),
        ("compare beef stew and chickpea stew", "DetectComparisonPrompt", COMPARISON, "CompareItemsPrompt"),
        ("a menu of vegan stew and a tart", "DetectMultiItemTypeQueryPrompt", DINNER, "EnsemblePrompt"),
    ],
)
@pytest.mark.parametrize(
    ("broken", "code"), [(Fail(400), "model_failed"), ("lorem ipsum", "model_reply")], ids=["400", "garbage"]
)
async def test_a_tool_that_fails_falls_back_to_a_search_with_the_failure_named(
    serve: Serve,
    model: ScriptedModel,
    query: str,
    chosen: str,
    reply: Mapping[str, Any],
    run: str,
    broken: Any,
    code: str,
) -> None:
    server = await kitchen(serve, model)
    model.answer = SensibleModel(replies={chosen: dict(reply), run: broken})
    frames = await server.ask(query, site="kitchen")
    assert not [kind for kind in frames.kinds if kind in ("compare_items", "item_details", "ensemble_result")]
    assert frames.one("error")["code"] in (code, "model_refused")
    assert [one["selected_tool"] for one in frames.of("tool_selection")][-1] == "search"
    assert frames.one("complete")["degraded"]
    assert names(frames)


async def test_a_comparison_in_plain_words_is_one_if_it_names_what_it_compares(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await kitchen(serve, model)
    said = "The chickpea one is vegan, the other is not."
    model.answer = SensibleModel(replies={"DetectComparisonPrompt": COMPARISON, "CompareItemsPrompt": said})
    frames = await server.ask("compare beef stew and chickpea stew", site="kitchen")
    assert frames.one("compare_items")["comparison"] == said
    assert not frames.of("error")


@pytest.mark.parametrize("broken", [Hang(), Fail(400), "lorem ipsum"], ids=repr)
async def test_a_choice_that_fails_is_skipped_and_named(
    serve: Serve, model: ScriptedModel, tmp_path: Path, broken: Any
) -> None:
    (tmp_path / "own.xml").write_text(
        '<root><Thing><Prompt ref="DetectComparisonPrompt" timeout="0.2"><promptString>{request.query}'
        '</promptString><returnStruc>{"comparison_query": "True or False", "item1_name": "x",'
        ' "item2_name": "y", "details_requested": "z"}</returnStruc></Prompt></Thing></root>'
    )
    server = await kitchen(serve, model, prompts_dir=tmp_path)
    model.answer = SensibleModel(replies={"DetectComparisonPrompt": broken})
    frames = await server.ask("compare beef stew and chickpea stew", site="kitchen")
    assert "tool_choice_skipped" in frames.one("complete")["timings"]
    assert not frames.of("error")
    assert {"Beef stew", "Chickpea stew"} <= set(names(frames))


# ---------------------------------------------------------------- the client's word, and no model


async def test_a_forced_tool_is_taken_whatever_the_choice_says(serve: Serve, model: ScriptedModel) -> None:
    server = await kitchen(serve, model)
    unsure = {**DETAILS, "item_details_query": False}
    model.answer = SensibleModel(
        replies={"DetectQueryTypePrompt": unsure, "ExtractItemDetailsPrompt": EXTRACTED}
    )
    frames = await server.ask("minestrone vegetables", site="kitchen", tool="details")
    assert frames.one("item_details")["name"] == "Minestrone"


async def test_an_unknown_tool_is_a_bad_request_that_names_those_there_are(serve: Serve) -> None:
    server = await kitchen(serve, None)
    status, said = await server.json("GET", "/ask", params={"query": "a", "tool": "divination"})
    assert (status, said["error"]["field"]) == (400, "tool")
    assert "search, compare, ensemble, details" in said["error"]["message"]


async def test_without_a_model_named_items_are_compared_by_their_passages(serve: Serve) -> None:
    server = await kitchen(serve, None)
    frames = await server.ask("compare the beef stew with the chickpea stew", site="kitchen")
    compared = frames.one("compare_items")
    assert (compared["item1"]["name"], compared["item2"]["name"]) == ("Beef stew", "Chickpea stew")
    assert "red wine" in compared["comparison"]
    assert "chickpeas" in compared["comparison"]


async def test_without_a_model_more_is_told_of_a_named_item(serve: Serve) -> None:
    server = await kitchen(serve, None)
    frames = await server.ask("tell me more about the minestrone", site="kitchen")
    assert "beans and pasta" in frames.one("item_details")["details"]
    assert frames.final[0]["ranking_type"] == "RETRIEVAL"


@pytest.mark.parametrize(
    "query",
    ["a menu of stew and tart", "compare all stews", "what is in the minestrone?", "tell me more about rice"],
)
async def test_without_a_model_anything_less_plain_is_a_search(serve: Serve, query: str) -> None:
    server = await kitchen(serve, None)
    frames = await server.ask(query, site="kitchen")
    assert not frames.of("tool_selection")
    assert names(frames)


# ---------------------------------------------------------------- no more items than are wanted

THREE = {"single_item_type_query": False, "item_queries": ["soup with beans", "vegan stew", "lemon tart"]}
MENU = [
    {"category": "first", "name": "Minestrone"},
    {"category": "main", "name": "Chickpea stew"},
    {"category": "main", "name": "Beef stew"},
    {"category": "dessert", "name": "Lemon tart"},
]
PUTTING = {
    "DetectComparisonPrompt": COMPARISON,
    "CompareItemsPrompt": {"comparison": "One is vegan."},
    "DetectMultiItemTypeQueryPrompt": THREE,
    "EnsemblePrompt": {"theme": "A dinner.", "items": MENU, "overall_tips": []},
}
COMPARING = "compare the beef stew and the chickpea stew"
COMBINING = "a menu with soup, stew and tart"


@pytest.mark.parametrize(
    ("query", "wanted", "with_model"),
    [(COMPARING, 1, True), (COMPARING, 1, False), (COMBINING, 1, True), (COMBINING, 2, True)],
)
async def test_a_tool_that_needs_more_items_than_are_wanted_is_not_taken(
    serve: Serve, model: ScriptedModel, query: str, wanted: int, with_model: bool
) -> None:
    server = await kitchen(serve, model if with_model else None)
    model.answer = SensibleModel(replies=PUTTING, scores={"": 80})
    frames = await server.ask(query, site="kitchen", max_results=wanted)
    assert not frames.of("tool_selection")
    assert len(frames.final) == wanted


@pytest.mark.parametrize(
    ("query", "tool", "kind", "wanted"),
    [
        (COMPARING, "compare", "compare_items", 1),
        (COMBINING, "ensemble", "ensemble_result", 2),
        (COMBINING, None, "ensemble_result", 3),
    ],
)
async def test_a_tools_answer_has_no_more_final_items_than_are_wanted(
    serve: Serve, model: ScriptedModel, query: str, tool: str | None, kind: str, wanted: int
) -> None:
    server = await kitchen(serve, model)
    model.answer = SensibleModel(replies=PUTTING, scores={"": 80})
    frames = await server.ask(query, site="kitchen", max_results=wanted, tool=tool)
    said = frames.one(kind)
    assert len(frames.final) == len(frames.items) == wanted
    if kind == "ensemble_result":
        put = [one["name"] for one in said["result"]["recommendations"]["items"]]
        assert put == names(frames)
        # Of each course one before a second of any.
        assert put == ["Minestrone", "Chickpea stew", "Lemon tart"][:wanted]


# ---------------------------------------------------------------- a site's own and a package's own


TOOL = (
    '<root><Recipe><Tool name="details"{more}><prompt>Details? {{request.query}}</prompt>'
    '<returnStruc>{{"score": "integer between 0 and 100", "item_name": "the item",'
    ' "details_requested": "the details"}}</returnStruc></Tool></Recipe></root>'
)


@pytest.mark.parametrize(("score", "tool"), [(95, "details"), (40, None)])
async def test_a_types_own_tool_prompt_decides_by_its_score(
    serve: Serve, model: ScriptedModel, tmp_path: Path, score: int, tool: str | None
) -> None:
    own = TOOL.format(more="") + ""
    (tmp_path / "tools.xml").write_text(own.replace("<root>", '<root><Site ref="kitchen" types="Recipe"/>'))
    server = await kitchen(serve, model, prompts_dir=tmp_path)
    chosen = {"score": score, "item_name": "Minestrone", "details_requested": "beans"}
    model.answer = SensibleModel(
        replies={"tool:details": chosen, "tool_details": chosen, "ExtractItemDetailsPrompt": EXTRACTED}
    )
    frames = await server.ask("what vegetables are in the minestrone?", site="kitchen")
    assert not asked(model, "DetectQueryTypePrompt")
    assert [one["selected_tool"] for one in frames.of("tool_selection")] == ([tool] if tool else [])
    assert bool(frames.of("item_details")) == (tool is not None)


async def test_a_tool_that_is_switched_off_is_not_asked_about(
    serve: Serve, model: ScriptedModel, tmp_path: Path
) -> None:
    own = TOOL.format(more=' enabled="false"')
    (tmp_path / "tools.xml").write_text(own.replace("<root>", '<root><Site ref="kitchen" types="Recipe"/>'))
    server = await kitchen(serve, model, prompts_dir=tmp_path)
    model.answer = SensibleModel(replies={"DetectQueryTypePrompt": DETAILS})
    frames = await server.ask("what vegetables are in the minestrone?", site="kitchen")
    assert not asked(model, "DetectQueryTypePrompt")
    assert "Minestrone" in names(frames)


class Substitution:
    """What a package may offer."""

    name = "substitution"
    description = "says what to use instead of an ingredient"

    def looks_like(self, query: Query) -> bool:
        return "instead of" in query.text

    async def run(self, query: Query, parameters: Mapping[str, Any], kit: Kit) -> ToolAnswer | None:
        if "nothing" in query.text:
            return None
        if "trouble" in query.text:
            raise RuntimeError("a fault in the package")
        found = await kit.search("chickpeas")
        items = [kit.item(one, 80.0, "It has them.") for one in found[:1]]
        if "much" in query.text:
            items = [kit.item(one, score, "It is one.") for one in kit.found for score in (90.0, 70.0, 20.0)]
        return ToolAnswer((Summary("Use chickpeas."),), tuple(items))


@pytest.fixture
def offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`Substitution` as an installed package's tool."""
    folder = tmp_path / "site-packages"
    info = folder / "kitchen_tools-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kitchen-tools\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[askable.tools]\nsubstitution = kitchen_tools:Substitution\n")
    (folder / "kitchen_tools.py").write_text(f"from {__name__} import Substitution\n")
    monkeypatch.syspath_prepend(folder)
    all_tools.cache_clear()
    yield
    all_tools.cache_clear()


@pytest.mark.usefixtures("offered")
async def test_a_packages_tool_answers_fails_and_passes_like_ours(serve: Serve, model: ScriptedModel) -> None:
    server = await kitchen(serve, model)
    model.answer = SensibleModel()
    told = await server.ask("stew with beans instead of beef", site="kitchen")
    assert told.one("tool_selection")["selected_tool"] == "substitution"
    assert told.one("summary")["message"] == "Use chickpeas."
    assert names(told) == ["Chickpea stew"]
    passed = await server.ask("stew with nothing instead of beef", site="kitchen")
    assert not passed.of("summary")
    assert "Beef stew" in names(passed)
    failed = await server.ask("stew with trouble instead of beef", site="kitchen")
    assert failed.one("error")["message"] == "the tool `substitution` failed"
    assert failed.one("complete")["degraded"]
    assert "Beef stew" in names(failed)
    forced = await server.ask("chickpeas", site="kitchen", tool="substitution")
    assert forced.one("summary")


@pytest.mark.usefixtures("offered")
async def test_what_holds_for_every_answer_holds_for_a_packages_tool(
    serve: Serve, model: ScriptedModel
) -> None:
    server = await kitchen(serve, model)
    model.answer = SensibleModel()
    asked_for = {"site": "kitchen", "tool": "substitution"}
    told = await server.ask("much stew", max_results=2, **asked_for)
    assert told.one("summary")
    assert len(told.one("complete")["order"]) == 2
    assert len(set(told.one("complete")["order"])) == 2
    assert [item["score"] for item in told.items] == [90, 90]
    searched = await server.ask("much stew", min_score=95, **asked_for)
    assert not searched.of("summary")
    assert not searched.final
