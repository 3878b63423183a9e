"""What the model sees of the items it scores: the likeliest at length, of the others an abstract."""

from __future__ import annotations

import json
from typing import Any

import orjson

from core import resources
from core.documents import Candidate, Document
from core.prompting.ask import Prompter
from core.prompting.library import PromptLibrary
from core.providers.base import Usage
from core.providers.chat import chat_model
from core.query import Query
from core.ranking import ABSTRACT, AT_LENGTH, Ranker, Scored, as_prompted, in_short
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
