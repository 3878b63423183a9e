"""What each step before and beside the ranking does to an answer, and what one that fails does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import KITCHEN, Frames, Serve, Served, recipe
from tests.fakes.openai_server import Fail, Hang, ModelRequest, ScriptedModel
from tests.fakes.sensible_model import SensibleModel, values_of

IRRELEVANT = {"site_is_irrelevant_to_query": True, "explanation_for_irrelevance": "This kitchen cooks."}
RELEVANT = {"site_is_irrelevant_to_query": False, "explanation_for_irrelevance": ""}
WAIT = 0.02  # seconds between two looks of a model that waits for something

DESCRIBED = '<Site ref="kitchen" types="Recipe"><description>home cooking</description></Site>'
SEVERAL = '<Site ref="kitchen" types="Recipe Movie"/>'
HOMES = '<Site ref="homes" types="RealEstate"><description>flats by the sea</description></Site>'


def limited(ref: str, keys: str, kind: str = "Thing", limit: float = 0.2) -> str:
    """A prompt of one's own with a time limit that a test can wait for."""
    text = f"<promptString>{{request.query}}</promptString><returnStruc>{keys}</returnStruc>"
    return f'<{kind}><Prompt ref="{ref}" timeout="{limit}">{text}</Prompt></{kind}>'


RELEVANCE_KEYS = '{"site_is_irrelevant_to_query": "True or False", "explanation_for_irrelevance": "why"}'
REQUIRED_KEYS = '{"required_info_found": "True or False", "user_question": "a question"}'
REWRITE_KEYS = '{"requires_decontextualization": "True or False", "decontextualized_query": "a question"}'


@pytest.fixture
def prompts(tmp_path: Path) -> Callable[[str], Path]:
    """A folder of prompts with one file."""

    def made(inside: str) -> Path:
        folder = tmp_path / "prompts"
        folder.mkdir(exist_ok=True)
        (folder / "site.xml").write_text(f"<root>{inside}</root>", encoding="utf-8")
        return folder

    return made


def home(slug: str, name: str, text: str) -> dict[str, Any]:
    return {
        "@type": "RealEstateListing",
        "url": f"https://homes.example/{slug}",
        "name": name,
        "description": text,
    }


HOME_LIST = [
    home("nervi", "Two rooms in Nervi", "A flat with two rooms near the sea in Nervi, 850 euros."),
    home("turin", "Loft in Turin", "A loft flat in the centre of Turin, 1200 euros."),
]


def asked(model: ScriptedModel, ref: str) -> list[ModelRequest]:
    return [one for one in model.requests if one.schema_name == ref]


def names(frames: Frames) -> list[str]:
    return [item["name"] for item in frames.final]


def skipped(frames: Frames) -> set[str]:
    timings = frames.one("complete")["timings"]
    return {name.removesuffix("_skipped") for name in timings if name.endswith("_skipped")}


async def kitchen(serve: Serve, model: ScriptedModel, folder: Path, **more: Any) -> Served:
    server = await serve(model=model, prompts_dir=folder, **more)
    await server.load("kitchen", KITCHEN)
    return server


# ---------------------------------------------------------------- relevance


async def test_an_irrelevant_question_is_told_so_and_the_ranking_is_stopped(
    serve: Serve, model: ScriptedModel, prompts: Callable[[str], Path]
) -> None:
    server = await kitchen(serve, model, prompts(DESCRIBED))
    model.answer = SensibleModel(
        replies={
            # It answers once the ranking has begun, which would never end by itself.
            "DetectIrrelevantQueryPrompt": lambda _: IRRELEVANT if asked(model, "RankingPrompt") else WAIT,
            "RankingPrompt": Hang(),
        }
    )
    frames = await server.ask("renew my passport with stew", site="kitchen")
    assert frames.one("site_is_irrelevant_to_query")["message"] == "This kitchen cooks."
    assert not frames.items
    assert not frames.of("no_results")
    assert not frames.of("error")
    assert frames.one("complete")["order"] == []
    await model.left(1)
    assert len(asked(model, "RankingPrompt")) == 1


async def test_a_relevant_question_is_answered_without_waiting_for_the_verdict(
    serve: Serve, model: ScriptedModel, prompts: Callable[[str], Path]
) -> None:
    server = await kitchen(serve, model, prompts(DESCRIBED))
    model.answer = SensibleModel(replies={"DetectIrrelevantQueryPrompt": Hang()})
    frames = await server.ask("vegan stew", site="kitchen")
    assert "Chickpea stew" in names(frames)
    # Nothing failed: it was not waited for.
    assert skipped(frames) == set()
    assert "relevance_late" in frames.one("complete")["timings"]
    assert not frames.one("complete")["degraded"]
    await model.left(1)


async def test_a_verdict_after_results_were_shown_is_dropped(
    serve: Serve, model: ScriptedModel, prompts: Callable[[str], Path]
) -> None:
    server = await kitchen(serve, model, prompts(DESCRIBED))
    judged: list[bool] = []

    def verdict(_: ModelRequest) -> Any:
        if not asked(model, "SummarizeResultsPrompt"):
            return WAIT  # the results are not shown yet
        judged.append(True)
        return IRRELEVANT

    model.answer = SensibleModel(
        replies={
            "DetectIrrelevantQueryPrompt": verdict,
            "SummarizeResultsPrompt": lambda _: {"summary": "Stew."} if judged else WAIT,
        }
    )
    frames = await server.ask("vegan stew", site="kitchen", mode="summarize")
    assert frames.one("summary")["message"] == "Stew."
    assert names(frames)
    assert not frames.of("site_is_irrelevant_to_query")


async def test_nothing_found_is_explained_by_the_verdict(
    serve: Serve, model: ScriptedModel, prompts: Callable[[str], Path]
) -> None:
    server = await kitchen(serve, model, prompts(DESCRIBED))
    ranked: list[bool] = []

    def nothing_fits(request: ModelRequest) -> Any:
        ranked.append(True)
        return SensibleModel(scores={"": 0})(request)

    model.answer = SensibleModel(
        replies={
            "RankingPrompt": nothing_fits,
            "DetectIrrelevantQueryPrompt": lambda _: IRRELEVANT if ranked else WAIT,
        },
    )
    frames = await server.ask("stew", site="kitchen")
    assert frames.one("site_is_irrelevant_to_query")
    assert not frames.of("no_results")


@pytest.mark.parametrize("broken", [Hang(), Fail(400), "what a lovely question", {"other": 1}], ids=repr)
async def test_a_relevance_step_that_fails_is_skipped_and_named(
    serve: Serve, model: ScriptedModel, prompts: Callable[[str], Path], broken: Any
) -> None:
    described = DESCRIBED.replace(
        "</Site>", limited("DetectIrrelevantQueryPrompt", RELEVANCE_KEYS) + "</Site>"
    )
    server = await kitchen(serve, model, prompts(described))
    reply = (lambda _: "{}") if broken == {"other": 1} else broken
    model.answer = SensibleModel(replies={"DetectIrrelevantQueryPrompt": reply})
    # Nothing fits, so that the verdict is waited for.
    frames = await server.ask("passports", site="kitchen")
    assert frames.one("no_results")["reason"] == "below_min_score"
    assert skipped(frames) == {"relevance"}
    assert not frames.of("error")


@pytest.mark.parametrize("site", ["all", "kitchen,bakery", "bakery"])
async def test_relevance_is_asked_only_of_one_named_site_that_says_what_it_holds(
    serve: Serve, model: ScriptedModel, prompts: Callable[[str], Path], site: str
) -> None:
    server = await kitchen(serve, model, prompts(DESCRIBED))
    await server.load("bakery", [recipe("loaf", "Loaf", "Bread of wheat.")])
    model.answer = SensibleModel()
    await server.ask("bread and stew", site=site)
    assert not asked(model, "DetectIrrelevantQueryPrompt")
    await server.ask("stew", site="kitchen")
    assert len(asked(model, "DetectIrrelevantQueryPrompt")) == 1


# ---------------------------------------------------------------- item type

FILM = {
    "@type": "Movie",
    "url": "https://kitchen.example/film",
    "name": "The stew",
    "description": "A film about a vegan stew.",
}


async def test_a_sure_kind_narrows_the_answer_and_the_ranking_does_not_wait_for_it(
    serve: Serve, model: ScriptedModel, prompts: Callable[[str], Path]
) -> None:
    server = await kitchen(serve, model, prompts(SEVERAL))
    await server.load("kitchen", [FILM])
    model.answer = SensibleModel(
        replies={
            "DetectItemTypePrompt": lambda _: (
                {"item_type": "movie"} if asked(model, "RankingPrompt") else WAIT
            )
        }
    )
    frames = await server.ask("vegan stew", site="kitchen")
    assert names(frames) == ["The stew"]
    assert not skipped(frames)


@pytest.mark.parametrize("said", ["Recipe", "Boat", "Thing"])
async def test_a_kind_that_may_only_mean_that_the_question_is_open_narrows_nothing(
    serve: Serve, model: ScriptedModel, prompts: Callable[[str], Path], said: str
) -> None:
    server = await kitchen(serve, model, prompts(SEVERAL))
    await server.load("kitchen", [FILM])
    model.answer = SensibleModel(replies={"DetectItemTypePrompt": {"item_type": said}})
    assert {"The stew", "Chickpea stew"} <= set(names(await server.ask("vegan stew", site="kitchen")))


async def test_a_kind_of_which_nothing_is_good_enough_narrows_nothing(
    serve: Serve, model: ScriptedModel, prompts: Callable[[str], Path]
) -> None:
    server = await kitchen(serve, model, prompts(SEVERAL))
    model.answer = SensibleModel(replies={"DetectItemTypePrompt": {"item_type": "Movie"}})
    assert "Chickpea stew" in names(await server.ask("vegan stew", site="kitchen"))


@pytest.mark.parametrize("broken", [Fail(400), "lorem ipsum"], ids=repr)
async def test_an_item_type_step_that_fails_is_skipped_and_named(
    serve: Serve, model: ScriptedModel, prompts: Callable[[str], Path], broken: Any
) -> None:
    server = await kitchen(serve, model, prompts(SEVERAL))
    model.answer = SensibleModel(replies={"DetectItemTypePrompt": broken})
    frames = await server.ask("vegan stew", site="kitchen")
    assert "Chickpea stew" in names(frames)
    assert skipped(frames) == {"item_type"}


async def test_the_kind_is_not_asked_for_where_it_could_not_be_used(
    serve: Serve, model: ScriptedModel, prompts: Callable[[str], Path]
) -> None:
    server = await kitchen(serve, model, prompts(SEVERAL))
    await server.load("bakery", [recipe("loaf", "Loaf", "Bread of wheat.")])
    model.answer = SensibleModel()
    await server.ask("vegan stew", site="kitchen", item_type="Recipe")
    await server.ask("vegan stew", site="bakery")
    await server.ask("vegan stew")
    assert not asked(model, "DetectItemTypePrompt")


# ---------------------------------------------------------------- required info


async def test_what_is_missing_is_asked_back_and_the_answer_completes_the_question(
    serve: Serve, model: ScriptedModel, prompts: Callable[[str], Path]
) -> None:
    server = await serve(model=model, prompts_dir=prompts(HOMES))
    await server.load("homes", HOME_LIST)

    def required(request: ModelRequest) -> dict[str, Any]:
        said = " ".join(values_of(request.prompt, "request.query", "request.previousQueries"))
        return {"required_info_found": "Nervi" in said, "user_question": "In which town?"}

    model.answer = SensibleModel(
        rewrites={"Nervi please": "a flat with two rooms in Nervi"}, replies={"RequiredInfoPrompt": required}
    )
    first = await server.ask("a flat with two rooms", site="homes")
    question = {"id": "required_info", "text": "In which town?", "type": "text", "options": []}
    back = first.one("ask_user")
    assert (back["message"], back["questions"]) == ("In which town?", [question])
    assert not first.items
    assert not first.of("no_results")
    assert first.one("complete")["order"] == []
    second = await server.ask("Nervi please", site="homes", prev=["a flat with two rooms"])
    assert second.one("decontextualized_query")["decontextualized_query"] == "a flat with two rooms in Nervi"
    assert not second.of("ask_user")
    assert names(second)[0] == "Two rooms in Nervi"


async def in_a_conversation(server: Served) -> str:
    status, made = await server.json("POST", "/conversations", json={})
    assert status == 201
    return str(made["id"])


@pytest.mark.parametrize("mode", ["list", "generate"])
@pytest.mark.parametrize("page", [{}, {"context_description": "Homes by the sea"}], ids=["", "on a page"])
async def test_the_answer_to_a_question_back_is_shown_as_one_and_never_stands_alone(
    serve: Serve,
    model: ScriptedModel,
    prompts: Callable[[str], Path],
    page: dict[str, str],
    mode: str,
) -> None:
    server = await serve(model=model, prompts_dir=prompts(HOMES))
    await server.load("homes", HOME_LIST)
    complete = {"requires_decontextualization": False, "decontextualized_query": "Nervi"}
    asks = {"required_info_found": False, "user_question": "In which  town?"}
    done = {"required_info_found": True, "user_question": ""}
    model.answer = SensibleModel(
        replies={
            "RequiredInfoPrompt": lambda r: done if "asked_back" in r.prompt else asks,
            **dict.fromkeys(("PrevQueryDecontextualizer", "FullDecontextualizePrompt"), complete),
        }
    )
    here = {"site": "homes", "mode": mode, "conversation_id": await in_a_conversation(server), **page}
    before = "Please remember that I love the sea. A flat with two rooms"
    first = await server.ask(before, **here)
    assert first.one("ask_user")["message"] == "In which town?"
    second = await server.ask("Nervi", **here)
    (request,) = asked(model, "FullDecontextualizePrompt" if page else "PrevQueryDecontextualizer")
    assert [json.loads(one) for one in values_of(request.prompt, "request.previousQueries")] == [
        [{"asked": before, "asked_back": "In which town?"}]
    ]
    assert not second.of("ask_user")
    assert not second.one("complete")["degraded"]
    written = "SynthesizePromptForGenerate" if mode == "generate" else "RankingPrompt"
    for request in asked(model, written)[-1:]:
        (meant,) = values_of(request.prompt, "request.query")
        assert "two rooms" in meant
        assert meant.endswith(" Nervi")
    # A client that sends its own questions is in the same conversation.
    model.requests.clear()
    third = await server.ask("Pegli", prev=["x", "Nervi"], **here)
    assert "asked_back" not in " ".join(request.prompt for request in asked(model, "RankingPrompt"))
    assert third.kinds[-1] == "complete"


async def test_nobody_is_asked_back_more_than_twice_running(
    serve: Serve, model: ScriptedModel, prompts: Callable[[str], Path]
) -> None:
    server = await serve(model=model, prompts_dir=prompts(HOMES))
    await server.load("homes", HOME_LIST)
    missing = {"required_info_found": False, "user_question": "Where?"}
    complete = {"requires_decontextualization": False, "decontextualized_query": "x"}
    model.answer = SensibleModel(
        replies={"RequiredInfoPrompt": missing, "PrevQueryDecontextualizer": complete}
    )
    here = {"site": "homes", "conversation_id": await in_a_conversation(server)}
    for words in ("a flat with rooms", "anywhere"):
        assert (await server.ask(words, **here)).one("ask_user")
    third = await server.ask("Nervi then", **here)
    assert not third.of("ask_user")
    assert names(third)
    (meant,) = values_of(asked(model, "RankingPrompt")[-1].prompt, "request.query")
    assert meant == "a flat with rooms anywhere Nervi then"
    # After an answer it may be asked again.
    assert (await server.ask("a house", **here)).one("ask_user")


async def test_what_is_known_of_the_person_counts_as_said(
    serve: Serve, model: ScriptedModel, prompts: Callable[[str], Path]
) -> None:
    server = await serve(model=model, prompts_dir=prompts(HOMES))
    await server.load("homes", HOME_LIST)

    def required(request: ModelRequest) -> dict[str, Any]:
        known = "Nervi" in " ".join(values_of(request.prompt, "request.memory"))
        return {"required_info_found": known, "user_question": "Where?"}

    model.answer = SensibleModel(replies={"RequiredInfoPrompt": required})
    frames = await server.ask("a flat with rooms", site="homes", memory=["looks for homes in Nervi"])
    assert not frames.of("ask_user")
    assert names(frames)


async def test_results_are_ranked_but_held_until_it_is_known_that_nothing_is_missing(
    serve: Serve, model: ScriptedModel, prompts: Callable[[str], Path]
) -> None:
    server = await serve(model=model, prompts_dir=prompts(HOMES))
    await server.load("homes", HOME_LIST)
    missing = {"required_info_found": False, "user_question": "Where?"}
    model.answer = SensibleModel(
        replies={"RequiredInfoPrompt": lambda _: missing if asked(model, "RankingPrompt") else WAIT}
    )
    frames = await server.ask("a flat with rooms", site="homes")
    assert frames.one("ask_user")
    assert not frames.items


@pytest.mark.parametrize("broken", [Hang(), Fail(400), "lorem ipsum"], ids=repr)
async def test_a_required_info_step_that_fails_holds_nothing_up(
    serve: Serve, model: ScriptedModel, prompts: Callable[[str], Path], broken: Any
) -> None:
    own = limited("RequiredInfoPrompt", REQUIRED_KEYS, "RealEstate")
    server = await serve(model=model, prompts_dir=prompts(HOMES + own))
    await server.load("homes", HOME_LIST)
    model.answer = SensibleModel(replies={"RequiredInfoPrompt": broken})
    frames = await server.ask("a flat with two rooms", site="homes")
    assert names(frames)[0] == "Two rooms in Nervi"
    assert "required_info" in skipped(frames)


# ---------------------------------------------------------------- the page a question is asked on


async def test_a_question_on_a_stored_page_is_understood_from_that_item(
    serve: Serve, model: ScriptedModel, prompts: Callable[[str], Path]
) -> None:
    server = await kitchen(serve, model, prompts(""))
    model.answer = SensibleModel(rewrites={"without coconut": "a curry with tofu without coconut"})
    page = {"context_url": "https://kitchen.example/tofu-curry#top"}
    frames = await server.ask("without coconut", site="kitchen", **page)
    (request,) = asked(model, "DecontextualizeContextPrompt")
    (told,) = values_of(request.prompt, "request.contextDescription")
    assert told.startswith("Tofu curry\n")
    assert "coconut milk" in told
    assert frames.one("decontextualized_query")["original_query"] == "without coconut"
    await server.ask("without coconut", site="kitchen", prev=["curries"], **page)
    (both,) = asked(model, "FullDecontextualizePrompt")
    assert "Tofu curry" in values_of(both.prompt, "request.contextDescription")[0]
    assert values_of(both.prompt, "request.previousQueries") == ['["curries"]']


async def test_a_page_of_a_site_that_is_not_asked_is_not_looked_into(
    serve: Serve, model: ScriptedModel, prompts: Callable[[str], Path]
) -> None:
    server = await kitchen(serve, model, prompts(""))
    await server.load("bakery", [recipe("loaf", "Loaf", "Bread of wheat.")])
    model.answer = SensibleModel()
    for url in ("https://kitchen.example/tofu-curry", "https://nowhere.example/x"):
        await server.ask("bread without wheat", site="bakery", context_url=url)
    assert not asked(model, "DecontextualizeContextPrompt")
    assert all("coconut" not in request.prompt for request in model.requests)


async def test_what_the_client_says_of_a_page_is_taken_as_it_is(
    serve: Serve, model: ScriptedModel, prompts: Callable[[str], Path]
) -> None:
    server = await kitchen(serve, model, prompts(""))
    model.answer = SensibleModel()
    await server.ask("what goes with it", site="kitchen", context_description="Farinata, a flatbread")
    (request,) = asked(model, "DecontextualizeContextPrompt")
    assert values_of(request.prompt, "request.contextDescription") == ["Farinata, a flatbread"]


@pytest.mark.parametrize(("broken", "code"), [(Hang(), "model_timeout"), ("lorem ipsum", "model_reply")])
async def test_a_rewriting_that_fails_is_named_and_the_follow_up_searched_with_the_question_before(
    serve: Serve, model: ScriptedModel, prompts: Callable[[str], Path], broken: Any, code: str
) -> None:
    folder = prompts(limited("PrevQueryDecontextualizer", REWRITE_KEYS))
    server = await kitchen(serve, model, folder)
    model.answer = SensibleModel(replies={"PrevQueryDecontextualizer": broken})
    frames = await server.ask("vegan", site="kitchen", prev=["stew with chickpeas"])
    assert frames.one("error")["code"] == code
    assert "decontextualize" in skipped(frames)
    assert frames.one("complete")["degraded"]
    assert "Chickpea stew" in names(frames)


# ---------------------------------------------------------------- how many calls


@pytest.mark.parametrize("prev", [[], ["a flat by the sea"]], ids=["first", "follow-up"])
@pytest.mark.parametrize("query", ["a flat with rooms", "what is there with rooms in Nervi?"])
async def test_no_question_takes_more_than_eight_calls(
    serve: Serve, model: ScriptedModel, prompts: Callable[[str], Path], prev: list[str], query: str
) -> None:
    busy = HOMES.replace("RealEstate", "RealEstate Movie")
    server = await serve(model=model, prompts_dir=prompts(busy))
    await server.load("homes", [home(f"h{n}", f"Home {n}", f"A flat with {n} rooms.") for n in range(60)])
    model.answer = SensibleModel(
        rewrites={query: f"{query} by the sea"}, replies={"RequiredInfoPrompt": {"required_info_found": True}}
    )
    frames = await server.ask(query, site="homes", prev=prev)
    assert len(asked(model, "RankingPrompt")) == 5
    assert asked(model, "RequiredInfoPrompt") or prev
    assert len(model.requests) <= 8
    assert frames.one("complete")["usage"]["model_calls"] == len(model.requests)


# ---------------------------------------------------------------- the filter by type

PLACES = [
    {
        "@type": kind,
        "url": f"https://places.example/{n}",
        "name": f"Place {n}",
        "description": "By the harbour.",
    }
    for n, kind in enumerate(["Restaurant", ["Bakery", "Museum"], "Museum", "Article"])
]


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("Museum", {"Place 1", "Place 2"}),
        ("FoodEstablishment", {"Place 0", "Place 1"}),
        ("https://schema.org/LocalBusiness", {"Place 0", "Place 1"}),
        ("article", {"Place 3"}),
        ("Thing", {"Place 0", "Place 1", "Place 2", "Place 3"}),
    ],
)
async def test_only_items_of_the_type_or_one_below_it_are_found(
    serve: Serve, kind: str, found: set[str]
) -> None:
    server = await serve()
    await server.load("places", PLACES)
    assert set(names(await server.ask("harbour", site="places", item_type=kind))) == found
    assert set(names(await server.ask("harbour", site="places", required_item_type=kind))) == found


async def test_the_filter_reaches_beyond_the_best_matches(serve: Serve) -> None:
    server = await serve()
    many = [recipe(f"s{n}", f"Stew {n}", "stew stew stew") for n in range(30)]
    rare = {**recipe("book", "A book", "with one stew among other words about the sea"), "@type": "Book"}
    await server.load("kitchen", [*many, rare])
    frames = await server.ask("stew", site="kitchen", item_type="Book", num_results=3, max_results=3)
    assert names(frames) == ["A book"]


async def test_a_type_that_nothing_has_is_the_reason_for_an_empty_answer(serve: Serve) -> None:
    server = await serve()
    await server.load("places", PLACES)
    frames = await server.ask("harbour", site="places", item_type="Movie")
    assert frames.one("no_results")["reason"] == "filters"
