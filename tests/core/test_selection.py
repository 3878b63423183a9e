"""Which items are final: capped, above the threshold, once each, in one order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.messages import Item
from core.selection import Selection


def item(name: str, score: float) -> Item:
    return Item(f"https://a.example/{name}", name, "a", score, "", {}, "FAST_TRACK", name)


@given(
    st.lists(st.tuples(st.sampled_from("abcdefghijkl"), st.integers(0, 100)), max_size=30),
    st.integers(0, 3),
    st.integers(1, 5),
)
def test_final_items_hold_whatever_the_order_of_arrival(
    offers: list[tuple[str, int]], start: int, size: int
) -> None:
    selection = Selection(start=start, size=size, min_score=51)
    shown = {name for place, (name, score) in enumerate(offers) if selection.offer(item(name, score), place)}
    final = selection.final()
    names = [one.name for one in final]
    assert len(names) == len(set(names)) <= size
    assert all(one.score is not None and one.score >= 51 for one in final)
    assert [one.score for one in final] == sorted((one.score or 0 for one in final), reverse=True)
    # What is final on the first page was shown as soon as it was known to be.
    assert start or set(names) <= shown


def test_equal_scores_stand_in_the_order_of_retrieval() -> None:
    selection = Selection(start=0, size=3, min_score=0)
    for place, name in ((2, "c"), (0, "a"), (1, "b")):
        selection.offer(item(name, 70), place)
    assert [one.name for one in selection.final()] == ["a", "b", "c"]


def test_an_item_that_is_not_among_the_best_is_not_shown() -> None:
    selection = Selection(start=0, size=1, min_score=0)
    assert selection.offer(item("good", 90), 0)
    assert not selection.offer(item("worse", 80), 1)
    assert selection.offer(item("better", 95), 2)


def test_an_exempt_item_needs_no_score() -> None:
    selection = Selection(start=0, size=5, min_score=51)
    assert not selection.offer(item("low", 20), 0)
    assert selection.offer(item("unjudged", 20), 1, exempt=True)
    assert selection.below == 1
