"""What the model sees of the items it scores: the likeliest at length, of the others an abstract."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import orjson

from core import resources
from core.documents import Candidate, Document
from core.prompting.ask import Prompter
from core.prompting.library import PromptLibrary
from core.providers.base import Usage
from core.providers.chat import chat_model
from core.query import Query
from core.ranking import (
    _TRIMMED,
    ABSTRACT,
    AT_LENGTH,
    TRIMMED_BYTES,
    Ranker,
    Scored,
    as_prompted,
    in_short,
)
from core.settings import LlmSettings
from tests.fakes.openai_server import ScriptedModel
from tests.fakes.sensible_model import SensibleModel, tagged_items

LIBRARY = PromptLibrary.load([resources.site_types()], [])
QUERY = Query(text="a soup", query_id="q", conversation_id="c", sites=("kitchen",))
STORY = "An old soup of the valley, told at length by those who cook it. " * 20


def candidate(n: int, *, chunks: int = 1) -> Candidate:
    item = {"@type": "Recipe", "name": f"Soup {n}.", "description": STORY, "keywords": STORY[:200]}
    url = f"https://kitchen.example/{n}"
    document = Document(
        "kitchen", f"{n}", "v", url, f"Soup {n}.", ("Recipe",), "en", orjson.dumps(item), "", chunks
    )
    return Candidate(document, 0, f"The passage of {n}. {STORY}", 1 - n / 100, {})


def size(seen: Any) -> int:
    return len(json.dumps(seen, ensure_ascii=False))


async def test_the_likeliest_are_told_at_length_and_all_are_scored(model: ScriptedModel) -> None:
    chat = chat_model(LlmSettings(base_url=model.url))
    assert chat is not None
    model.answer = SensibleModel()
    found = [candidate(n) for n in range(30)]
    ranker = Ranker(Prompter(lambda: LIBRARY, chat), batch_size=10)
    scored = [one async for one in ranker.rank(QUERY, found, Usage())]
    await chat.close()
    assert len(scored) == 30
    assert all(isinstance(one, Scored) and one.score is not None for one in scored)
    told = {
        one["item"]["name"]: size(one["item"])
        for request in model.requests
        for one in tagged_items(request.prompt)[0]
    }
    lengths = [told[f"Soup {n}."] for n in range(30)]
    assert min(lengths[:AT_LENGTH]) > ABSTRACT >= max(lengths[AT_LENGTH:])


def test_an_abstract_of_a_long_page_has_room_for_the_passage_that_was_found() -> None:
    page = candidate(7, chunks=9)
    short, whole = in_short(page), as_prompted(page)
    assert isinstance(short, dict)
    assert isinstance(whole, dict)
    assert str(short["passage"]).startswith("The passage of 7. An old soup")
    assert short["name"] == "Soup 7."
    assert size(short) < ABSTRACT + 50 < size(whole)


def test_replaced_item_is_shown_with_its_new_text_though_the_old_is_kept() -> None:
    old = candidate(7)
    item = orjson.dumps({"@type": "Recipe", "name": "Soup 7.", "description": "With saffron now."})
    new = replace(old, document=replace(old.document, item=item))
    for show in (as_prompted, in_short, as_prompted, in_short):
        assert "saffron" not in json.dumps(show(old))
        assert "saffron" in json.dumps(show(new))


def test_a_passage_is_the_one_that_this_search_found() -> None:
    page = candidate(7, chunks=9)
    other = replace(page, n=3, text="What another search found in it.")
    for show in (as_prompted, in_short):
        first, second = show(page), show(other)
        assert isinstance(first, dict)
        assert isinstance(second, dict)
        assert (first["passage"], second["passage"]) != (second["passage"], first["passage"])
        assert second["passage"] == other.text
        assert "passage" not in show(candidate(7))  # type: ignore[operator]


def test_items_as_prompts_show_them_are_kept_within_a_bound() -> None:
    filler = "x" * (TRIMMED_BYTES // 20)
    for n in range(30):
        item = orjson.dumps({"name": f"Soup {n}", "sku": filler})
        one = candidate(n)
        as_prompted(replace(one, document=replace(one.document, item=item)))
        assert _TRIMMED.bytes <= TRIMMED_BYTES
