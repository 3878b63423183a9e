"""The store of facts: once, by its owner alone, the newer over the older, and gone when it is forgotten."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from itertools import product
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.database import Database
from core.errors import BadQuery, ModelTimeout, NotFound, StoreError
from core.memory import COLLECTION, Asking, Detected, Fact, Facts, Reach, Verdict
from core.memory.store import MAX_ALWAYS, MAX_RECALLED, SEARCHED
from core.memory.tables import facts as table
from core.memory.tables import history
from core.providers.base import Where
from core.providers.use import UseEmbedder
from core.query import Identity
from core.retrieval import Leg
from tests.core.memory.support import ANNA, BO, DAY_S, Kept, memory_in
from tests.postgres import Postgres

OF_ANNA = Reach.of(ANNA)


pytestmark = pytest.mark.both_databases


@pytest.fixture
async def kept(tmp_path: Path, database_url: str | None) -> AsyncIterator[Kept]:
    async with memory_in(tmp_path, url=database_url) as kept:
        yield kept


def asking(text: str, who: Identity = ANNA, **more: object) -> Asking:
    return Asking(who, text, ("user", "application", "agent", "thread"), **more)  # type: ignore[arg-type]


async def texts(kept: Kept, who: Identity = ANNA) -> list[str]:
    return sorted(fact.text for fact in await kept.facts.all(Reach.of(who)))


async def test_the_same_said_twice_is_one_fact(kept: Kept) -> None:
    first = await kept.say("I love coriander")
    again = await kept.facts.remember(kept.detected("  i LOVE coriander!"))
    assert (again.memory_id, again.repeated) == (first, True)
    assert await texts(kept) == ["I love coriander"]
    assert [step.event for step in await kept.facts.changes(OF_ANNA, first)] == ["ADD"]


async def test_the_same_said_many_times_at_once_is_one_fact(kept: Kept) -> None:
    said = [kept.detected("I love coriander") for _ in range(20)]
    stored = await asyncio.gather(*(kept.facts.remember(one) for one in said))
    assert len({one.memory_id for one in stored}) == 1
    assert await kept.store.count(COLLECTION, Where()) == 1


async def test_the_newer_of_two_that_contradict_holds_and_the_older_can_be_restored(kept: Kept) -> None:
    older = await kept.say("I love coriander")
    newer = await kept.facts.remember(kept.detected("I can't stand coriander any more"))
    assert newer.superseded == (older,)
    assert await texts(kept) == ["I can't stand coriander any more"]
    assert [f.text for f in await kept.facts.recall(asking("a coriander dish"))] == [
        "I can't stand coriander any more"
    ]
    old = await kept.facts.get(OF_ANNA, older)
    assert (old.status, old.superseded_by) == ("superseded", newer.memory_id)
    assert [step.event for step in await kept.facts.changes(OF_ANNA, older)] == ["ADD", "SUPERSEDE"]
    await kept.facts.restore(OF_ANNA, older)
    assert await texts(kept) == ["I love coriander"]
    assert [f.text for f in await kept.facts.search(OF_ANNA, "coriander", 5)] == ["I love coriander"]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I love Chinese food", "I hate Chinese food"),
        ("My name is liguoyu", "My name is liguosong"),
        ("I live in Genoa", "I have moved to Turin"),
        ("me gusta el cilantro", "ya no me gusta el cilantro"),
        ("mi piace il coriandolo", "non mi piace più il coriandolo"),
        ("我喜欢香菜", "我讨厌香菜"),
        ("저는 고수를 좋아해요", "저는 고수를 싫어해요"),
        ("I am vegetarian", "I am no longer vegetarian"),
    ],
)
async def test_contradictions_are_seen_without_a_model(kept: Kept, older: str, newer: str) -> None:
    await kept.say(older)
    await kept.say(newer)
    assert await texts(kept) == [newer]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I love coriander", "I love basil"),
        ("I love coriander", "I can't stand parsley"),
        ("I have a dog", "I have a cat"),
        ("I live in Genoa", "I work in Turin"),
        ("I moved the meeting to Friday", "I live in Genoa"),
    ],
)
async def test_what_can_both_be_stands_side_by_side(kept: Kept, one: str, other: str) -> None:
    await kept.say(one)
    await kept.say(other)
    assert await texts(kept) == sorted([one, other])


class Says:
    """A judge that always says the same of the first older fact, and counts."""

    def __init__(
        self,
        relation: str,
        memory_id: str | None = None,
        *,
        new: tuple[str, str] = ("", ""),
        old: tuple[str, str] = ("", ""),
    ) -> None:
        self.relation = relation
        self.memory_id = memory_id
        self.new, self.old = new, old
        self.asked = 0

    async def compare(self, new: Detected, older: Sequence[Fact]) -> Verdict:
        self.asked += 1
        if self.relation == "fails":
            raise ModelTimeout("late")
        named = self.memory_id or older[0].memory_id
        return Verdict(self.relation, named, self.new, self.old)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("relation", "older", "newer", "left"),
    [
        ("replaces", "Works at the bakery", "Works at the harbour now", ["Works at the harbour now"]),
        ("repeats", "Has two small children", "Two small children at home", ["Has two small children"]),
        # The model may say what it likes of facts that have nothing in common.
        ("replaces", "Owns a kayak", "Works at the bakery", ["Owns a kayak", "Works at the bakery"]),
        (
            "fails",
            "Works at the bakery",
            "Works at the harbour now",
            ["Works at the bakery", "Works at the harbour now"],
        ),
        ("adds", "Has a dog", "Has a cat as well as a dog", ["Has a cat as well as a dog", "Has a dog"]),
    ],
)
async def test_the_model_decides_only_between_facts_about_the_same_thing(
    tmp_path: Path, relation: str, older: str, newer: str, left: list[str]
) -> None:
    same = ("person", "job")
    async with memory_in(tmp_path, judge=Says(relation, new=same, old=same)) as kept:
        await kept.say(older)
        await kept.say(newer)
        assert await texts(kept) == left


APART = [
    ("My daughter is allergic to nuts", "My daughter likes football"),
    ("I am allergic to peanuts", "I like the Peanuts comics"),
    ("I am allergic to peanuts", "I am allergic to walnuts"),
    ("I was born in Rome", "I work near Rome"),
    ("My dog is called Rex", "My dog eats fish"),
    ("I never eat pork", "Pork prices interest me as a butcher"),
    ("My son eats nuts", "My son does not eat nuts"),
    ("My locker is 4711", "My locker is 4712"),
    ("Trabajo los domingos", "No trabajo los domingos"),
    ("Mi hija es alérgica a las nueces", "Mi hija juega al fútbol"),
    ("我女儿对花生过敏", "我女儿喜欢足球"),
    ("I am allergic to Nutella", "Sono allergica alla Nutella"),
]
LABELS = [
    (("", ""), ("", "")),
    (("daughter", ""), ("daughter", "")),
    (("daughter", "hobby"), ("daughter", "allergy")),
]


@pytest.mark.parametrize("relation", ["replaces", "repeats"])
async def test_one_wrong_word_of_the_model_hides_no_fact(tmp_path: Path, relation: str) -> None:
    judge = Says(relation)
    async with memory_in(tmp_path, judge=judge) as kept:
        for n, ((older, newer), (judge.new, judge.old)) in enumerate(product(APART, LABELS), 1):
            person = Identity("key:shop", f"person {n}")
            judge.memory_id = await kept.say(older, person)
            await kept.say(newer, person)
            assert (judge.asked, await texts(kept, person)) == (n, sorted([older, newer]))


@pytest.mark.parametrize("relation", ["replaces", "repeats"])
@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("My daughter is allergic to nuts", "My daughter likes football"),
        ("My son eats nuts", "My son is allergic to nuts"),
    ],
)
async def test_what_must_always_hold_goes_for_nothing_less_whatever_the_model_says(
    tmp_path: Path, older: str, newer: str, relation: str
) -> None:
    same = ("child", "food")
    async with memory_in(tmp_path, judge=Says(relation, new=same, old=same)) as kept:
        await kept.say(older, subject="child", attribute="food")
        await kept.say(newer, subject="child", attribute="food")
        left = [newer] if (relation, newer) == ("replaces", "My son is allergic to nuts") else [older, newer]
        assert await texts(kept) == sorted(left)


async def test_a_fact_that_is_said_again_in_another_language_is_kept_once(tmp_path: Path) -> None:
    same = ("person", "parking place")
    async with memory_in(tmp_path, judge=Says("repeats", new=same, old=same)) as kept:
        await kept.say("My parking place is behind the Galata museum")
        await kept.say("Il mio posto auto si trova dietro il museo Galata")
        assert await texts(kept) == ["My parking place is behind the Galata museum"]


async def test_the_model_replaces_what_has_the_same_subject_and_attribute(tmp_path: Path) -> None:
    async with memory_in(tmp_path, judge=Says("replaces")) as kept:
        of_the_job = {"subject": "person", "attribute": "job"}
        await kept.say("Works at the bakery", **of_the_job)
        await kept.say("Drives the bakery van", subject="van", attribute="vehicle")
        assert len(await texts(kept)) == 2
        await kept.say("Nurse at the bakery's clinic", **of_the_job)
        assert await texts(kept) == ["Drives the bakery van", "Nurse at the bakery's clinic"]


async def test_an_id_the_model_made_up_changes_nothing(tmp_path: Path) -> None:
    async with memory_in(tmp_path, judge=Says("replaces", "no-such-id")) as kept:
        await kept.say("Works at the bakery")
        await kept.say("Works at the bakery's shop")
        assert len(await texts(kept)) == 2


async def test_a_forgotten_fact_leaves_a_mark_and_no_text(kept: Kept) -> None:
    memory_id = await kept.say("I love coriander")
    await kept.facts.update(OF_ANNA, memory_id, text="I love fresh coriander")
    assert await kept.facts.forget(OF_ANNA, [memory_id]) == [memory_id]
    assert await kept.facts.forget(OF_ANNA, [memory_id]) == []
    with pytest.raises(NotFound):
        await kept.facts.get(OF_ANNA, memory_id)
    with pytest.raises(NotFound):
        await kept.facts.restore(OF_ANNA, memory_id)
    steps = await kept.facts.changes(OF_ANNA, memory_id)
    assert [step.event for step in steps] == ["ADD", "UPDATE", "DELETE"]
    assert {text for step in steps for text in (step.old_text, step.new_text)} == {None}
    assert await kept.facts.search(OF_ANNA, "coriander", 5) == []
    assert await kept.store.count(COLLECTION, Where()) == 0


async def test_undo_brings_back_what_was_superseded(kept: Kept) -> None:
    await kept.say("I love coriander")
    newer = await kept.say("I can't stand coriander")
    await kept.facts.forget(OF_ANNA, [newer], undo=True)
    assert await texts(kept) == ["I love coriander"]
    assert len(await kept.facts.search(OF_ANNA, "coriander", 5)) == 1


async def test_undo_where_the_same_holds_again_already_leaves_it_once(kept: Kept) -> None:
    await kept.say("I live in Rome")
    newer = await kept.say("I live in Milan")
    other = await kept.say("My cat is called Rex")
    await kept.facts.update(OF_ANNA, other, text="I live in Rome")
    assert await texts(kept) == ["I live in Rome"]
    assert await kept.facts.forget(OF_ANNA, [newer], undo=True) == [newer]
    assert await texts(kept) == ["I live in Rome"]


@pytest.mark.parametrize("since", ["I live in Rome", "I live in Oslo"])
async def test_undo_brings_back_nothing_that_holds_already_or_has_been_contradicted_since(
    tmp_path: Path, database_url: str | None, since: str
) -> None:
    same = ("person", "home")
    judge = Says("replaces", new=same, old=same)
    async with memory_in(tmp_path, url=database_url, judge=judge) as kept:
        older = await kept.say("I live in Rome")
        nowhere = await kept.say("Rome is over, a boat is where I sleep")
        assert (await kept.facts.get(OF_ANNA, older)).superseded_by == nowhere
        judge.relation = "adds"
        await kept.say(since)
        assert await kept.facts.forget(OF_ANNA, [nowhere], undo=True) == [nowhere]
        assert await texts(kept) == [since]


async def test_restoring_leaves_one_of_what_cannot_both_be(kept: Kept) -> None:
    rome, milan, _ = [await kept.say(f"I live in {city}") for city in ("Rome", "Milan", "Paris")]
    for memory_id, text in ((rome, "I live in Rome"), (milan, "I live in Milan"), (rome, "I live in Rome")):
        await kept.facts.restore(OF_ANNA, memory_id)
        assert await texts(kept) == [text]
        assert [fact.text for fact in await kept.facts.search(OF_ANNA, "live", 5)] == [text]


@pytest.mark.parametrize("between", ["forgotten", "expired"])
async def test_restoring_hides_what_stands_in_its_place_also_over_one_that_is_gone(
    tmp_path: Path, database_url: str | None, between: str
) -> None:
    same = ("person", "boat")
    judge = Says("replaces", new=same, old=same)
    async with memory_in(tmp_path, url=database_url, judge=judge) as kept:
        first = await kept.say("My boat is a red kayak")
        second = await kept.say("My boat is a blue canoe", expires_at=kept.clock.now + DAY_S)
        await kept.say("My boat is a green raft")
        if between == "forgotten":
            await kept.facts.forget(OF_ANNA, [second])
        else:
            kept.clock.now += 2 * DAY_S
            assert await kept.facts.purge() == 1
        await kept.facts.restore(OF_ANNA, first)
        assert await texts(kept) == ["My boat is a red kayak"]


async def test_a_changed_text_supersedes_what_it_contradicts(kept: Kept) -> None:
    oslo = await kept.say("I live in Oslo")
    other = await kept.say("My flat has two rooms")
    await kept.facts.update(OF_ANNA, other, text="I live in Rome")
    assert await texts(kept) == ["I live in Rome"]
    assert (await kept.facts.get(OF_ANNA, oslo)).superseded_by == other
    assert [fact.text for fact in await kept.facts.search(OF_ANNA, "live", 5)] == ["I live in Rome"]


async def test_a_changed_text_is_as_binding_as_its_words_say(kept: Kept) -> None:
    changed = await kept.say("I love walnuts")
    chosen = await kept.say("I love hazelnuts", kind="fact")
    await kept.facts.update(OF_ANNA, changed, text="I am allergic to walnuts")
    await kept.facts.update(OF_ANNA, chosen, text="I adore hazelnuts")
    kinds = {fact.text: fact.kind for fact in await kept.facts.all(OF_ANNA)}
    assert kinds == {"I am allergic to walnuts": "constraint", "I adore hazelnuts": "fact"}


async def test_a_text_that_only_an_expired_fact_has_may_be_given(kept: Kept) -> None:
    await kept.say("I love figs", expires_at=kept.clock.now + DAY_S)
    other = await kept.say("I love dates")
    kept.clock.now += 2 * DAY_S
    await kept.facts.update(OF_ANNA, other, text="I love figs")
    assert await texts(kept) == ["I love figs"]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I don't eat meat", "I eat meat again"),
        ("I eat meat again", "I don't eat meat"),
        ("I don't drink coffee", "I drink coffee again"),
        ("No como carne", "Como carne otra vez"),
        ("Non mangio pesce", "Mangio di nuovo pesce"),
        ("Non bevo caffè", "Ho ripreso a bere caffè"),
        ("我不吃肉", "我又吃肉了"),
        ("저는 고기를 안 먹어요", "저는 다시 고기를 먹어요"),
    ],
)
async def test_who_eats_it_again_is_not_said_not_to(kept: Kept, older: str, newer: str) -> None:
    await kept.say(older)
    await kept.say(newer)
    assert await texts(kept) == [newer]


async def test_constraints_are_recalled_whatever_else_a_person_likes(kept: Kept) -> None:
    await kept.say("I never eat peanuts")
    for n in range(MAX_RECALLED + 5):
        await kept.say(f"I love film number {n}")
    found = [fact.text for fact in await kept.facts.recall(asking("an opera for tonight"))]
    assert "I never eat peanuts" in found
    assert len(found) == MAX_ALWAYS


async def test_many_constraints_leave_room_for_what_a_question_calls_up(kept: Kept) -> None:
    await kept.say("My locker number at the pool is 4711")
    for n in range(MAX_RECALLED + 5):
        await kept.say(f"I am allergic to additive {n}")
    found = await kept.facts.recall(asking("which locker"))
    assert sum(fact.kind == "constraint" for fact in found) == MAX_RECALLED + 5
    assert found[0].text == "My locker number at the pool is 4711"


async def test_a_fact_that_matches_is_found_behind_any_number_of_preferences(kept: Kept) -> None:
    await kept.say("My locker number at the pool is 4711")
    for n in range(75):
        await kept.say(f"I love film number {n}")
    found = [fact.text for fact in await kept.facts.recall(asking("which locker"))]
    assert "My locker number at the pool is 4711" in found
    assert len(found) == MAX_ALWAYS + 1


async def test_a_fact_that_matches_is_found_behind_many_of_other_places(kept: Kept) -> None:
    here = {"scope": "thread", "conversation_id": "here"}
    await kept.say("My locker at the big pool is on the left", **here)
    for n in range(SEARCHED + 5):
        await kept.say(f"Locker {n}", scope="thread", conversation_id=f"thread {n}")
        await kept.say(f"I love film number {n}", scope="thread", conversation_id=f"thread {n}")
    found = await kept.facts.recall(asking("locker", thread="here"))
    assert [fact.text for fact in found] == ["My locker at the big pool is on the left"]


async def test_of_several_sites_each_recalls_the_fact(kept: Kept) -> None:
    await kept.say("I love figs", scope="application", site="shop,kitchen")
    for site, found in (("kitchen", 1), ("shop", 1), ("bank", 0)):
        assert len(await kept.facts.recall(asking("dinner", applications=(site,)))) == found


async def test_the_same_confirmation_after_an_undo_keeps_nothing(kept: Kept) -> None:
    detected = kept.detected("I love coriander")
    first = await kept.facts.remember(detected)
    await kept.facts.forget(OF_ANNA, [first.memory_id])
    assert (await kept.facts.remember(detected)).repeated
    assert await texts(kept) == []
    await kept.say("I love coriander")
    assert await texts(kept) == ["I love coriander"]


async def test_recall_is_what_always_holds_and_what_the_question_calls_up(kept: Kept) -> None:
    await kept.say("I am allergic to walnuts")
    await kept.say("My oven is small")
    await kept.say("My sister lives in Quebec")
    found = [fact.text for fact in await kept.facts.recall(asking("a cake for a small oven"))]
    assert found == ["I am allergic to walnuts", "My oven is small"]
    assert [fact.text for fact in await kept.facts.recall(asking("zzz"))] == ["I am allergic to walnuts"]


async def test_a_fact_that_is_merely_the_nearest_is_not_recalled(tmp_path: Path) -> None:
    cases = [
        ("My bike is a Brompton", "lemon tart recipe", False),
        ("My bike is a Brompton", "a folding bicycle bag", True),  # near, without a word in common
        ("My sister lives in Quebec", "noise cancelling headphones", False),
        ("我家的烤箱很小", "烤箱食谱", True),
        ("서울에서 김치를 먹었다", "김치 만드는 법", True),
        ("I am allergic to walnuts", "noise cancelling headphones", True),  # a constraint always is
    ]
    encoder = await UseEmbedder.open()
    try:
        async with memory_in(tmp_path, legs=[Leg(encoder, 0.3)]) as kept:
            for n, (fact, question, recalled) in enumerate(cases):
                who = Identity("key:shop", f"user{n}")
                await kept.say(fact, who)
                found = [one.text for one in await kept.facts.recall(asking(question, who))]
                assert found == [fact] * recalled, question
                # Whoever looks for something is shown the nearest there is.
                assert [one.text for one in await kept.facts.search(Reach.of(who), question, 5)] == [fact]
    finally:
        await encoder.close()


async def test_chinese_and_korean_facts_are_found_by_their_words(kept: Kept) -> None:
    await kept.say("서울에서 김치를 먹었다")
    await kept.say("我家的烤箱很小")
    assert [f.text for f in await kept.facts.search(OF_ANNA, "김치", 5)] == ["서울에서 김치를 먹었다"]
    assert [f.text for f in await kept.facts.search(OF_ANNA, "小烤箱", 5)] == ["我家的烤箱很小"]


async def test_facts_of_a_place_are_recalled_there_alone(kept: Kept) -> None:
    await kept.say("I like long answers", scope="application", site="docs", kind="preference")
    await kept.say("I like short answers today", scope="thread", conversation_id="c1", kind="preference")
    await kept.say("I like puns", scope="agent", agent="clown", kind="preference")

    async def recalled(**more: object) -> list[str]:
        return [fact.text for fact in await kept.facts.recall(asking("x", **more))]

    assert await recalled() == []
    assert await recalled(applications=("docs", "shop")) == ["I like long answers"]
    assert await recalled(thread="c1") == ["I like short answers today"]
    assert await recalled(agent="clown") == ["I like puns"]
    assert await recalled(agent="clerk", thread="c2", applications=("shop",)) == []


async def test_expired_facts_are_not_seen_and_then_taken_out(kept: Kept) -> None:
    memory_id = await kept.say("I love coriander", expires_at=kept.clock.now + DAY_S)
    kept.clock.now += 2 * DAY_S
    assert await texts(kept) == []
    assert await kept.facts.recall(asking("coriander")) == []
    with pytest.raises(NotFound):
        await kept.facts.get(OF_ANNA, memory_id)
    again = await kept.say("I love coriander")
    assert again != memory_id
    await kept.facts.purge()
    assert await texts(kept) == ["I love coriander"]
    kept.clock.now += 400 * DAY_S
    assert await kept.facts.purge() == 1
    assert await kept.store.count(COLLECTION, Where()) == 0
    rows = await kept.database.read(lambda c: c.scalar(sa.select(sa.func.count()).select_from(history)))
    assert rows == 0


async def test_update_changes_what_is_found(kept: Kept) -> None:
    memory_id = await kept.say("My oven is small")
    await kept.say("My kettle is red")
    await kept.facts.update(OF_ANNA, memory_id, text="My oven is huge", kind="constraint", metadata={"a": 1})
    assert (await kept.facts.get(OF_ANNA, memory_id)).metadata == {"a": 1}
    assert [f.text for f in await kept.facts.search(OF_ANNA, "huge", 5)] == ["My oven is huge"]
    assert await kept.facts.search(OF_ANNA, "small", 5) == []
    with pytest.raises(BadQuery):
        await kept.facts.update(OF_ANNA, memory_id, text="my kettle is RED")


@pytest.mark.parametrize("text", ["", "   ", "!!!", "x" * 20_001])
async def test_a_text_that_is_none_is_refused(kept: Kept, text: str) -> None:
    with pytest.raises(BadQuery):
        await kept.say(text)


@pytest.mark.parametrize(
    ("realm", "ids"),
    [
        ("", {"user": "anna"}),
        ("key:shop", {"user": None}),
        ("key:shop", {"user": ""}),
        ("key:shop", {"user": "", "agent": ""}),
    ],
)
def test_a_reach_without_an_owner_cannot_be_made(realm: str, ids: dict[str, str | None]) -> None:
    with pytest.raises(ValueError, match="reach"):
        Reach(realm, **ids)  # type: ignore[arg-type]


async def test_erasing_one_person_leaves_the_others_and_nothing_of_the_one(kept: Kept) -> None:
    await kept.say("I love coriander")
    await kept.say("I can't stand coriander")
    forgotten = await kept.say("My oven is small")
    await kept.facts.forget(OF_ANNA, [forgotten])
    await kept.say("I love coriander", BO)
    gone = await kept.facts.erase(OF_ANNA)
    assert gone == {"memories": 2, "vectors": 1, "history": 5}
    for rows in (table, history):
        owners = await kept.database.read(lambda c, rows=rows: set(c.scalars(sa.select(rows.c.user_id))))
        assert owners == {"bo"}
    assert await kept.store.count(COLLECTION, Where({"identity": ANNA.key})) == 0
    assert await texts(kept, BO) == ["I love coriander"]
    assert await kept.facts.erase(OF_ANNA) == {"memories": 0, "vectors": 0, "history": 0}


async def test_what_a_kill_left_undone_is_done_at_the_next_start(tmp_path: Path) -> None:
    async with memory_in(tmp_path) as kept:
        unindexed = await kept.say("My oven is small")
        forgotten = await kept.say("My kettle is red")
        await kept.say("I love coriander")
        # As if the process had died between the row and the point, and between the mark and the point's end.
        await kept.store.delete_ids(COLLECTION, [unindexed])

        def undone(connection: sa.engine.Connection) -> None:
            connection.execute(sa.update(table).where(table.c.memory_id == unindexed).values(indexed=0))
            connection.execute(
                sa.update(table).where(table.c.memory_id == forgotten).values(status="deleted")
            )

        await kept.database.write(undone)
    async with memory_in(tmp_path) as kept:
        assert await kept.facts.sweep() == 2
        assert [f.text for f in await kept.facts.search(OF_ANNA, "oven", 5)] == ["My oven is small"]
        assert await kept.store.count(COLLECTION, Where()) == 2
        assert await kept.facts.sweep() == 0


async def test_a_lost_vector_store_is_filled_again(tmp_path: Path) -> None:
    async with memory_in(tmp_path) as kept:
        await kept.say("My oven is small")
        await kept.say("I love coriander")
        await kept.store.delete(COLLECTION, Where({"identity": ANNA.key}))
        assert await kept.facts.sweep() == 2
        assert len(await kept.facts.search(OF_ANNA, "oven", 5)) == 1


async def test_a_fact_is_kept_while_the_search_engine_is_down(tmp_path: Path) -> None:
    async with memory_in(tmp_path) as kept:
        await kept.store.close()
        memory_id = await kept.say("I am allergic to walnuts")
        assert [f.memory_id for f in await kept.facts.recall(asking("cake"))] == [memory_id]
        with pytest.raises(StoreError):
            await kept.facts.search(OF_ANNA, "walnuts", 5)
    async with memory_in(tmp_path) as kept:
        assert await kept.facts.sweep() == 1
        assert len(await kept.facts.search(OF_ANNA, "walnuts", 5)) == 1


async def test_no_text_of_a_fact_is_in_the_search_engines_files(tmp_path: Path) -> None:
    async with memory_in(tmp_path) as kept:
        await kept.say("I love zanzibarquince jam")
    files = [path for path in (tmp_path / "vectors").rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b"zanzibarquince" in path.read_bytes()]


async def test_two_servers_that_are_told_the_same_keep_it_once(postgres: Postgres, tmp_path: Path) -> None:
    with postgres.database() as url:
        async with memory_in(tmp_path, url=url) as kept:
            second = await Database.open(url, tmp_path)
            retriever = kept.facts._retriever
            other = Facts(second, kept.store, retriever, clock=kept.clock)
            told = [kept.detected("I love coriander") for _ in range(10)]
            stored = await asyncio.gather(
                *(facts.remember(one) for one, facts in zip(told, [kept.facts, other] * 5, strict=True))
            )
            assert sum(not one.repeated for one in stored) == 1
            assert await texts(kept) == ["I love coriander"]
            # And of two that contradict each other, one holds.
            newer = [kept.detected(f"I {verb} celery") for verb in ("love", "hate") * 5]
            await asyncio.gather(
                *(facts.remember(one) for one, facts in zip(newer, [kept.facts, other] * 5, strict=True))
            )
            assert len([text for text in await texts(kept) if "celery" in text]) == 1
            await second.close()


@pytest.mark.both_databases
async def test_the_longest_ids_fit_every_index(kept: Kept) -> None:
    """PostgreSQL's indexes take 2700 bytes of what cannot be compressed."""
    letters = "".join(chr(0x20000 + secrets.randbelow(40_000)) for _ in range(1024))
    who = Identity("key:shop", letters[:256])
    place = {"site": letters[256:512], "agent": letters[512:768], "conversation_id": letters[768:]}
    await kept.say("I love coriander", who, scope="thread", **place)
    await kept.say("I love coriander", who, scope="thread", **place)
    await kept.say("I love coriander", who, scope="thread", **{**place, "agent": "another"})
    assert await texts(kept, who) == ["I love coriander"] * 2


OWNERS = [
    Identity("key:a", "u1"),
    Identity("key:a", "u2"),
    Identity("key:b", "u1"),
    Identity("jwt:i", "u1"),
    Identity("cookie", "1:au1"),
    Identity("key:a", "u1 "),
    Identity("key", "a:u1"),
]


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(OWNERS),
            st.sampled_from(["say", "say", "say", "forget", "restore", "erase", "update"]),
            st.integers(0, 9),
        ),
        max_size=25,
    )
)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_nobody_ever_sees_or_changes_what_is_anothers(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Identity, str, int]]
) -> None:
    ids: list[str] = []
    async with memory_in(tmp_path_factory.mktemp("memory")) as kept:
        for who, verb, n in steps:
            reach = Reach.of(who)
            if verb == "say":
                # The owner is in the text: what anybody sees must be their own.
                ids.append(await kept.say(f"My dish number {n} of {who.key} is soup", who))
                continue
            if verb == "erase":
                await kept.facts.erase(reach)
                continue
            if not ids:
                continue
            memory_id = ids[n % len(ids)]
            try:
                if verb == "forget":
                    await kept.facts.forget(reach, [memory_id])
                elif verb == "restore":
                    await kept.facts.restore(reach, memory_id)
                else:
                    await kept.facts.update(reach, memory_id, text=f"My changed dish {n} of {who.key}")
            except (NotFound, BadQuery):
                pass
        for who in OWNERS:
            reach = Reach.of(who)
            seen = [
                *await kept.facts.all(reach),
                *await kept.facts.search(reach, "dish soup number changed", 100),
                *await kept.facts.recall(asking("dish soup", who)),
                *(await kept.facts.everything(reach))[0],
            ]
            assert {fact.identity for fact in seen} <= {who}
            assert all(fact.text == "" or f"of {who.key}".strip() in fact.text for fact in seen)
