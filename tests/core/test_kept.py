"""A cache bounded by bytes."""

from __future__ import annotations

from core.kept import OVERHEAD, Kept

ROOM = 10 * (100 + OVERHEAD)


def test_what_was_used_longest_ago_goes_and_the_bound_holds() -> None:
    kept: Kept[int, str] = Kept(ROOM)
    for n in range(10):
        kept.put(n, f"value {n}", 100)
    assert kept.bytes == ROOM
    assert kept.get(0) == "value 0"
    for n in range(10, 1000):
        kept.put(n, f"value {n}", n)
        assert kept.get(0) == "value 0"
        assert kept.bytes <= ROOM
    assert kept.get(1) is None
    assert kept.get(999) == "value 999"


def test_another_value_of_a_key_takes_the_place_of_the_first() -> None:
    kept: Kept[str, str] = Kept(ROOM)
    kept.put("a", "old", 1000)
    assert kept.put("a", "new", 10) == "new"
    assert kept.get("a") == "new"
    assert (len(kept), kept.bytes) == (1, 10 + OVERHEAD)


def test_what_is_larger_than_all_the_room_is_given_back_and_takes_nothing_away() -> None:
    kept: Kept[str, str] = Kept(ROOM)
    kept.put("small", "s", 10)
    kept.put("grows", "s", 10)
    assert kept.put("grows", "large", ROOM) == "large"
    assert kept.get("grows") is None
    assert kept.get("small") == "s"
    assert kept.bytes == 10 + OVERHEAD
