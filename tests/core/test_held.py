"""Nothing that one question, one item or one reply holds keeps the event loop for long."""

from __future__ import annotations

import asyncio
import random
import re
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import FrameType
from typing import Any

import orjson
import pytest

from core import cutoff, items, pace, passages
from core.cutoff import LOOKED_FOR
from core.documents import Candidate
from core.generation import Citations, choose, extract, uncited
from core.ingestion.text import trimmed
from core.items import MAX_READ, told, undescribed, with_passages
from core.language import detect, normalized
from core.passages import best_passage, has_kind, matching_passage, sentences
from core.prompting.coercion import to_list
from core.prompting.replies import line_of, objects_in, without_cut_value
from core.query import Query
from core.ranking import as_prompted, suspects
from core.screening import Screen
from core.tools import rules
from tests.core.test_generation import found

LONG = ("soup " + "how long " * 900)[:8000]
AT_MOST_S = 30  # of CPU, for what takes a fraction of a second; what looks at every pair takes minutes


@pytest.fixture
def limited() -> Iterator[None]:
    """Fails what looks at every pair of a long text's characters. It counts the process's own time, so that
    a busy machine does not matter."""

    def late(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"more than {AT_MOST_S} s of one processor")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, AT_MOST_S)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (uncited, " " * 300_000),
        (uncited, "[" + " " * 300_000),
        (uncited, "[ " * 150_000),
        (uncited, "[1](#" * 60_000),
        (lambda text: Citations({1}).feed(text), " " * 300_000 + "x"),
        (lambda text: Citations({1}).feed(text), "[" + " " * 300_000 + "x"),
        (sentences, "?" * 300_000),
        (sentences, "\n" * 300_000 + "x"),
        (sentences, "# " + " " * 300_000),
        (sentences, "a. " * 100_000),
        (lambda text: has_kind(text, "how many?"), "一" * 300_000),
        (lambda text: rules.compares(text), "better " * 40_000),
        (detect, "http中" * 80_000),
        (detect, "`" * 300_000),
        (objects_in, '{"a": "' + '\\"' * 200_000),
        (objects_in, '{\\"}' * 100_000),
        (lambda text: line_of("answer", text), "<answer>" * 50_000),
        (without_cut_value, "1" * 300_000 + "x"),
        (to_list, "a" * 300_000),
    ],
)
@pytest.mark.usefixtures("limited")
def test_a_text_of_one_sign_is_read_in_time(read: Callable[[str], Any], text: str) -> None:
    read(text)


@pytest.mark.usefixtures("limited")
def test_many_sentences_that_all_answer_are_weighed_in_time() -> None:
    text = " ".join(f"Soup {n}." for n in range(10_000))
    assert matching_passage(text, "soup 77", "en") == "Soup 77."


def test_what_a_question_asks_for_is_made_out_once_for_all_items() -> None:
    passages._kind_of.cache_clear()
    for n in range(30):
        best_passage(f"Soup {n} takes 20 minutes. It is hot.", LONG, "en")
        has_kind(f"Soup {n} takes 20 minutes.", LONG)
    assert passages._kind_of.cache_info().misses == 1


def test_the_kind_of_thing_is_still_made_out_from_words_that_stand_apart() -> None:
    text = "The soup is hot and good and takes no skill. It is ready in 20 minutes. It is served in a bowl."
    assert "20 minutes" in best_passage(text, "how long does the soup take", "en", 40)
    assert rules.compares("is the soup of today better than the stew")


def test_a_long_description_is_read_to_a_bound_and_the_found_chunk_beside_it() -> None:
    _, candidate = found("a", "The tart is baked for 40 minutes.")
    object_ = {"name": "a", "description": "A tart. " + "It is sweet. " * 25_000}
    long = replace(candidate, document=replace(candidate.document, item=orjson.dumps(object_)))
    said = told(long)
    assert [len(text) <= MAX_READ for text in said] == [True, True]
    assert "40 minutes" in items.passage(Query("how long is the tart baked?", "q", "c"), long)


def test_what_a_prompt_shows_of_a_long_text_is_its_beginning() -> None:
    text = "A stew of beef and carrots. " * 10_000
    (short, long) = (trimmed({"name": "x", "description": text[:length]}) for length in (20_000, 280_000))
    assert short == long
    assert short["description"].startswith("A stew of beef and carrots.")


def test_a_question_of_many_words_is_held_against_each_word_of_an_item_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rnd = random.Random(1)

    def made_up(count: int) -> list[str]:
        return ["s" + "".join(rnd.choices("abcdefgh", k=6)) for _ in range(count)]

    asked, texts = made_up(1000), [" ".join(made_up(100)) for _ in range(20)]
    calls = {"keys": 0, "one_letter_apart": 0}

    def counted(name: str) -> Callable[..., Any]:
        real = getattr(cutoff, name)

        def count(*args: Any) -> Any:
            calls[name] += 1
            return real(*args)

        return count

    for name in calls:
        monkeypatch.setattr(cutoff, name, counted(name))
    texts[0] += f" {asked[0]} {asked[-1]}"
    had = cutoff._had(list(dict.fromkeys(asked)), texts, ["en"] * len(texts))
    assert {asked[0], asked[-1]} <= had[0].keys()
    assert calls["keys"] <= 1000 + 20 * 102
    assert calls["one_letter_apart"] <= LOOKED_FOR * 20 * 102


def test_signs_that_grow_eighteenfold_do_not_make_a_long_question_of_a_short_one() -> None:
    assert len(normalized("\ufdfa" * 8000)) == 8000
    assert normalized("\uff33\uff2f\uff35\uff30 \ufb01g \ufdfa").startswith("SOUP fig ")


# ---------------------------------------------------------------- turns


async def turns_in(work: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> int:
    """How often another task had its turn while this was done, if every part of it takes long."""
    monkeypatch.setattr(pace, "TURN_S", 0.0)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    try:
        await work()
    finally:
        beside.cancel()
    return turns


@pytest.mark.parametrize("work", ["passages", "choose", "extract", "screen"])
async def test_others_have_their_turn_between_items(work: str, monkeypatch: pytest.MonkeyPatch) -> None:
    query = Query("how long does the soup take?", "q", "c")
    pairs = [found(f"t{n}", f"Soup {n} takes {n} minutes.") for n in range(1, 9)]
    among = [candidate for _, candidate in pairs]
    sources = await choose(pairs)

    async def passages_of() -> None:
        bare = [undescribed(candidate, None, "RETRIEVAL") for candidate in among]
        assert all(item.description for item in await with_passages(query, bare, among))

    async def screened() -> None:
        assert await suspects(Screen(), among) == set()

    done = {
        "passages": passages_of,
        "choose": lambda: choose(pairs),
        "extract": lambda: extract(query, sources),
        "screen": screened,
    }[work]
    assert await turns_in(done, monkeypatch) >= len(pairs)


def test_an_item_is_screened_once() -> None:
    _, candidate = found("a", "A soup.")
    shown: list[Candidate] = []

    def show(one: Candidate) -> Any:
        shown.append(one)
        return as_prompted(one)

    screen = Screen()
    assert not screen.suspects(candidate, show)
    assert not screen.suspects(candidate, show)
    assert len(shown) == 1


def test_a_pattern_gives_no_blank_back() -> None:
    assert uncited("see [   2   ] and [3]\tand [ note ]") == "see (2) and (3)\tand [ note ]"
    assert re.sub(r"\s+", " ", Citations({1}).feed("Soup \t [1] is hot. ")) == "Soup [1] is hot."
