"""Conversations: what is kept of an answer, for whom, how much of it, and for how long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from core.conversation import Conversations, Record, title_from, with_history
from core.conversation_rows import Entry, History, Said, ShownItem, Turn
from core.database import Database
from core.errors import BadQuery, NotFound
from core.messages import (
    Complete,
    Decontextualized,
    GeneratedAnswer,
    Item,
    NoResults,
    Results,
    Started,
)
from core.query import Identity, Query, Shown

ANNA = Identity("cookie", "anna")
BEN = Identity("cookie", "ben")
DAY = 86400.0


@dataclass
class Clock:
    now: float = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


pytestmark = pytest.mark.both_databases


@pytest.fixture
async def database(tmp_path: Path, database_url: str | None) -> AsyncIterator[Database]:
    database = await Database.open(database_url, tmp_path)
    yield database
    await database.close()


Make = Callable[..., Conversations]


@pytest.fixture
def make(database: Database, clock: Clock) -> Make:
    def conversations(**settings: Any) -> Conversations:
        settings = {"message_limit": 20, "expiration_s": DAY, "whiteboard": True, **settings}
        return Conversations(database, clock=clock, **settings)

    return conversations


def question(text: str, owner: Identity | None = ANNA, **more: Any) -> Query:
    return Query(**{"text": text, "query_id": f"q-{text}", "conversation_id": "c", "identity": owner, **more})


def item(name: str, score: float | None = 80) -> Item:
    return Item(f"https://k.example/{name}", name, "k", score, "", {}, "FAST_TRACK", name)


async def told(conversations: Conversations, query: Query, *names: str) -> None:
    """An answered question that showed these items."""
    record = conversations.record(query)
    assert record is not None
    record.see(Results(tuple(item(name) for name in names)))
    record.see(Complete(order=names))
    await conversations.keep_in_time(record)


def turn(n: int, asked: str, searched: str = "", shown: tuple[str, ...] = ()) -> Turn:
    items = tuple(ShownItem(name, f"https://k.example/{name}", name, "k") for name in shown)
    return Turn(n, f"q{n}", asked, searched or asked, items, "", ("k",), 0.0)


# ---------------------------------------------------------------- what becomes of an answer


async def test_turn_holds_what_was_asked_searched_shown_in_final_order_and_answered(make: Make) -> None:
    conversations = make()
    record = conversations.record(question("a vegan one", sites=("k",)))
    assert record is not None
    for message in (
        Started("1", "m"),
        Decontextualized("vegan lasagna", "a vegan one"),
        Results((item("worse", 60), item("dropped", 55))),
        Results((item("better", 90),)),
        GeneratedAnswer("Take it [1].", ({"name": "better", "url": "https://k.example/better"},)),
        Complete(order=("better", "worse")),
    ):
        record.see(message)
    await conversations.keep_in_time(record)
    found = await conversations.get(ANNA, "c")
    (kept,) = found.turns
    assert (kept.n, kept.query_id, kept.asked, kept.searched) == (
        1,
        "q-a vegan one",
        "a vegan one",
        "vegan lasagna",
    )
    assert [shown.title for shown in kept.shown][:2] == ["better", "worse"]
    assert "dropped" not in [shown.title for shown in kept.shown]
    assert kept.shown[0] == ShownItem("better", "https://k.example/better", "better", "k")
    assert kept.answer == "Take it [1]."
    assert kept.sites == ("k",)
    assert found.overview.title == "a vegan one"


async def test_stopped_answer_keeps_what_was_had_best_first(make: Make) -> None:
    record = Record(question("stew", max_results=2), ANNA)
    record.see(Results((item("low", 55), item("high", 90), item("middle", 70))))
    kept = record.turn(0.0)
    assert [shown.title for shown in kept.shown] == ["high", "middle"]


async def test_answer_without_results_keeps_what_was_said(make: Make) -> None:
    record = Record(question("stew"), ANNA)
    record.see(NoResults("Nothing here.", "below_min_score"))
    record.see(Complete(order=()))
    assert record.turn(0.0).answer == "Nothing here."


async def test_nobody_known_or_nothing_wanted_means_nothing_kept(make: Make) -> None:
    conversations = make()
    assert conversations.record(question("stew", None)) is None
    assert conversations.record(question("stew", remember=False)) is None


async def test_parallel_answers_lose_no_turn_and_share_no_number(make: Make) -> None:
    conversations = make(message_limit=50)
    await asyncio.gather(*(told(conversations, question(f"question {n}")) for n in range(40)))
    await conversations.stored()
    turns = (await conversations.get(ANNA, "c")).turns
    assert [turn.n for turn in turns] == list(range(1, 41))
    assert {turn.asked for turn in turns} == {f"question {n}" for n in range(40)}


async def test_keeping_twice_is_one_turn_and_outlives_its_caller(make: Make) -> None:
    conversations = make()
    record = conversations.record(question("stew"))
    assert record is not None
    caller = asyncio.create_task(conversations.keep_in_time(record))
    await asyncio.sleep(0)
    caller.cancel()
    conversations.keep(record)
    await conversations.stored()
    assert len((await conversations.get(ANNA, "c")).turns) == 1


async def test_turn_that_is_still_being_stored_is_in_the_history_once(make: Make, database: Database) -> None:
    conversations = make(message_limit=2)
    for name in ("soup", "stew"):
        await told(conversations, question(name))
    async with database._writing:
        for owner, name in ((ANNA, "tart"), (BEN, "curry")):
            record = conversations.record(question(name, owner))
            assert record is not None
            record.see(Results((item(name),)))
            conversations.keep(record)
        await asyncio.sleep(0)
        while_storing = await conversations.history(ANNA, "c")
        assert (await conversations.history(ANNA, "other")).turns == ()
    assert [turn.asked for turn in while_storing.turns] == ["stew", "tart"]
    assert while_storing.last_n == 3
    # Also where it is stored between the look at what is being stored and the end of reading.
    reading, _ = await asyncio.gather(conversations.history(ANNA, "c"), conversations.stored())
    assert [turn.asked for turn in reading.turns] == ["stew", "tart"]
    stored = await conversations.history(ANNA, "c")
    assert [(turn.asked, turn.shown) for turn in stored.turns] == [
        (turn.asked, turn.shown) for turn in while_storing.turns
    ]
    assert stored.last_n == 3


async def test_turn_that_is_erased_while_it_is_being_stored_is_not_in_the_history(
    make: Make, database: Database
) -> None:
    conversations = make()
    async with database._writing:
        record = conversations.record(question("stew"))
        assert record is not None
        conversations.keep(record)
        await asyncio.sleep(0)
        erasing = asyncio.create_task(conversations.erase(ANNA))
        await asyncio.sleep(0)
        assert (await conversations.history(ANNA, "c")).turns == ()
    await erasing


async def test_failing_store_stops_nothing(make: Make, database: Database) -> None:
    conversations = make()
    await database.write(lambda c: c.exec_driver_sql("DROP TABLE turns"))
    await told(conversations, question("stew"))
    await conversations.stored()


async def test_text_that_no_database_takes_is_kept_readable(make: Make) -> None:
    conversations = make()
    await told(conversations, question("a\ud800b\x00c", query_id="q"))
    assert (await conversations.get(ANNA, "c")).turns[0].asked == "a\ufffdb\ufffdc"


# ---------------------------------------------------------------- whose it is


async def test_same_id_of_two_owners_never_meets(make: Make) -> None:
    conversations = make()
    await told(conversations, question("anna's stew", ANNA))
    await told(conversations, question("ben's tart", BEN))
    assert [t.asked for t in (await conversations.history(ANNA, "c")).turns] == ["anna's stew"]
    assert [t.asked for t in (await conversations.history(BEN, "c")).turns] == ["ben's tart"]
    await conversations.delete(BEN, "c")
    assert (await conversations.get(ANNA, "c")).overview.turns == 1


async def test_anothers_conversation_is_not_there(make: Make) -> None:
    conversations = make()
    await told(conversations, question("stew"))
    with pytest.raises(NotFound):
        await conversations.get(BEN, "c")
    with pytest.raises(NotFound):
        await conversations.rename(BEN, "c", "mine")
    with pytest.raises(NotFound):
        await conversations.delete(BEN, "c")
    assert await conversations.listed(BEN, limit=10) == ([], None)
    assert (await conversations.get(ANNA, "c")).overview.title == "stew"


# ---------------------------------------------------------------- how much, how long


async def test_only_the_newest_turns_stay(make: Make, database: Database) -> None:
    conversations = make(message_limit=3)
    for n in range(1, 6):
        await told(conversations, question(f"question {n}"))
    history = await conversations.history(ANNA, "c")
    assert [turn.asked for turn in history.turns] == ["question 3", "question 4", "question 5"]
    assert history.last_n == 5
    rows = await database.read(lambda c: c.exec_driver_sql("SELECT count(*) FROM turns").scalar())
    assert rows == 3


async def test_conversation_expires_a_while_after_its_last_use(make: Make, clock: Clock) -> None:
    conversations = make()
    await told(conversations, question("first"))
    clock.now += DAY - 1
    await told(conversations, question("second"))
    clock.now += DAY - 1
    assert len((await conversations.history(ANNA, "c")).turns) == 2
    clock.now += 1
    assert await conversations.history(ANNA, "c") == History()
    assert await conversations.listed(ANNA, limit=10) == ([], None)
    with pytest.raises(NotFound):
        await conversations.get(ANNA, "c")


async def test_expired_conversation_begins_anew_when_used(make: Make, clock: Clock) -> None:
    conversations = make()
    await told(conversations, question("old"))
    clock.now += DAY
    await told(conversations, question("new"))
    found = await conversations.get(ANNA, "c")
    assert [(turn.n, turn.asked) for turn in found.turns] == [(1, "new")]
    assert found.overview.title == "new"


async def test_purge_deletes_what_expired_and_nothing_else(
    make: Make, clock: Clock, database: Database
) -> None:
    conversations = make()
    await told(conversations, question("old"))
    await conversations.say(ANNA, "said", [("m1", Said("user", "old too"))])
    clock.now += DAY / 2
    await told(conversations, question("young", conversation_id="d"))
    clock.now += DAY / 2
    assert await conversations.purge() == 2
    assert [one.id for one in (await conversations.listed(ANNA, limit=10))[0]] == ["d"]
    for table, left in (("turns", 1), ("messages", 0), ("seen_messages", 0)):
        query = f"SELECT count(*) FROM {table}"
        assert await database.read(lambda c, query=query: c.exec_driver_sql(query).scalar()) == left


# ---------------------------------------------------------------- for their owner


async def test_list_is_last_used_first_and_comes_in_pages(make: Make, clock: Clock) -> None:
    conversations = make()
    for name in "abcde":
        await told(conversations, question(f"about {name}", conversation_id=name))
        clock.now += 1
    await told(conversations, question("more", conversation_id="a"))
    seen: list[str] = []
    before = None
    for _ in range(3):
        page, before = await conversations.listed(ANNA, limit=2, before=before)
        seen += [one.id for one in page]
    assert seen == ["a", "e", "d", "c", "b"]
    assert before is None


async def test_renamed_keeps_its_name(make: Make) -> None:
    conversations = make()
    await told(conversations, question("stew"))
    assert (await conversations.rename(ANNA, "c", "  Sunday\n dinner ")).overview.title == "Sunday dinner"
    await told(conversations, question("more"))
    assert (await conversations.get(ANNA, "c")).overview.title == "Sunday dinner"
    for bad in ("", "  ", "x" * 201):
        with pytest.raises(BadQuery, match="title"):
            await conversations.rename(ANNA, "c", bad)


async def test_started_conversation_is_there_before_its_first_question(make: Make) -> None:
    conversations = make()
    made, new = await conversations.start(ANNA)
    assert new
    assert (made.turns, made.title) == (0, "")
    again, new = await conversations.start(ANNA, made.id)
    assert not new
    assert again.id == made.id
    await told(conversations, question("stew", conversation_id=made.id))
    assert (await conversations.get(ANNA, made.id)).overview.title == "stew"
    with pytest.raises(BadQuery):
        await conversations.start(ANNA, "no spaces")


def test_title_is_a_line_of_the_first_question() -> None:
    assert title_from("  a\nvegan  one ") == "a vegan one"
    assert len(title_from("word " * 100)) <= 80
    assert title_from("word " * 100).endswith("…")


# ---------------------------------------------------------------- gone is gone


async def test_erased_text_is_in_no_row_and_no_byte_of_the_database(
    make: Make, database: Database, database_bytes: Callable[[], bytes]
) -> None:
    conversations = make()
    await told(conversations, question("a planted zebra secret"), "zebra stew")
    await conversations.say(ANNA, "said", [("id", Said("user", "zebra again"))])
    unseen = await conversations.unseen(1, 1000)
    assert unseen is not None
    await conversations.put_board(unseen, [Entry("w1", "decision", "zebra it is", 1)], 2)
    await told(conversations, question("ben's", BEN))
    assert b"zebra" in database_bytes()
    gone = await conversations.erase(ANNA)
    assert gone == {"conversations": 2, "turns": 1, "messages": 1, "whiteboard_entries": 1}
    assert await conversations.erase(ANNA) == dict.fromkeys(gone, 0)
    assert len((await conversations.get(BEN, "c")).turns) == 1
    await database.tidy()
    assert b"zebra" not in database_bytes()


async def test_answer_on_its_way_does_not_bring_back_what_was_erased(make: Make) -> None:
    conversations = make()
    await told(conversations, question("before"))
    on_its_way = [conversations.record(question("during")) for _ in range(2)]
    await conversations.erase(ANNA)
    assert on_its_way[0] is not None
    await conversations.keep_in_time(on_its_way[0])
    assert await conversations.history(ANNA, "c") == History()
    await told(conversations, question("after"))
    await conversations.delete(ANNA, "c")
    assert on_its_way[1] is not None
    await conversations.keep_in_time(on_its_way[1])
    assert await conversations.history(ANNA, "c") == History()


async def test_late_board_of_a_deleted_conversation_finds_nothing(make: Make) -> None:
    conversations = make()
    await told(conversations, question("stew"))
    unseen = await conversations.unseen(1, 1000)
    assert unseen is not None
    await conversations.delete(ANNA, "c")
    await told(conversations, question("tart"))
    assert not await conversations.put_board(unseen, [Entry("w1", "decision", "stew", 1)], 2)
    assert (await conversations.get(ANNA, "c")).board == ()


# ---------------------------------------------------------------- what a question sees


def test_stored_turns_are_the_history_of_a_client_that_sends_none() -> None:
    history = History(
        (turn(1, "lasagna", shown=("a", "b", "c", "d")), turn(2, "a vegan one", "vegan lasagna", ("e", "f"))),
        last_n=2,
    )
    query = with_history(question("for two?"), history)
    assert query.prev == ("lasagna", "a vegan one")
    assert query.searched == ("lasagna", "vegan lasagna")
    assert [shown.title for shown in query.last_answers] == ["e", "f", "a", "b", "c"]
    assert query.last_answers[0].question == "vegan lasagna"


def test_clients_own_history_wins() -> None:
    history = History((turn(1, "lasagna", shown=("a",)),), (Entry("w1", "decision", "x", 1),), last_n=1)
    own = question("for two?", prev=("soup",), history_given=True)
    assert with_history(own, history) == own
    first = question("for two?", history_given=True)
    assert with_history(first, history) == first
    with_answers = question(
        "the second", prev=("lasagna",), history_given=True, last_answers=(Shown("z", ""),)
    )
    assert with_history(with_answers, history).last_answers == (Shown("z", ""),)
    goes_on = question("the second", prev=("lasagna",), history_given=True)
    assert [shown.title for shown in with_history(goes_on, history).last_answers] == ["a"]


def test_whiteboard_comes_along_where_turns_are_cut() -> None:
    board = (Entry("w1", "decision", "region north", 1),)
    whole = History((turn(1, "one"), turn(2, "two")), board, last_n=2)
    cut = History((turn(4, "four"), turn(5, "five")), board, last_n=5)
    assert with_history(question("next"), whole).whiteboard == ()
    assert with_history(question("next"), cut).whiteboard == ("decision: region north",)
    clients_cut = question("next", prev=("two",), history_given=True)
    assert with_history(clients_cut, whole).whiteboard == ("decision: region north",)
