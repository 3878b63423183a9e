"""How new and how near: what is read of an item, and what it does to a score."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.signals import Signal, factor, kilometres, length, moment, place, seconds

DAY = 86_400.0
NOW = datetime(2026, 11, 29, 12, tzinfo=UTC).timestamp()
NEWS = Signal("Recency", ("datePublished",), 30 * DAY, 0.4)
NEAR = Signal("Distance", ("geo", "location", "areaServed"), 10.0, 0.4)
TAGGIA = (43.8447, 7.8511)
SANREMO = (43.8159, 7.7761)


def geo(lat: Any, lon: Any) -> dict[str, Any]:
    return {"@type": "GeoCoordinates", "latitude": lat, "longitude": lon}


@pytest.mark.parametrize(
    ("published", "expected"),
    [
        ("2026-11-29T12:00:00Z", 1.0),
        ("2026-10-30T12:00:00Z", 0.8),
        ("2026-10-30T14:00:00+02:00", 0.8),
        ("2026-09-30T12:00:00", 0.7),
        (["2001-01-01", "2026-10-30T12:00:00Z"], 0.8),
        ({"@type": "Date", "@value": "2026-10-30T12:00:00Z"}, 0.8),
        ("1926", 0.6),
        ("1926-05", 0.6),
        ("2027-01-01", 1.0),
        ("9999-12-31T23:59:59-12:00", 1.0),
        ("0001-01-01T00:00:00+14:00", 1.0),
        ("yesterday", 1.0),
        ("2026-13-45", 1.0),
        ("", 1.0),
        (None, 1.0),
        (1700000000, 1.0),
        ([], 1.0),
        ({}, 1.0),
        ([None, {"@value": None}, "soon"], 1.0),
    ],
)
def test_a_score_loses_half_of_the_weight_with_every_half_life(published: Any, expected: float) -> None:
    assert NEWS.factor({"datePublished": published}, NOW, None) == pytest.approx(expected, abs=1e-9)


def test_the_first_property_that_says_something_counts() -> None:
    both = Signal("Recency", ("dateModified", "datePublished"), 30 * DAY, 0.4)
    old, new = {"datePublished": "1926"}, {"dateModified": "2026-11-29T12:00:00Z"}
    assert both.factor(old, NOW, None) == pytest.approx(0.6)
    assert both.factor(old | new, NOW, None) == 1.0
    assert both.factor(old | {"dateModified": "broken"}, NOW, None) == pytest.approx(0.6)


@pytest.mark.parametrize(
    "item",
    [
        {"geo": geo(*SANREMO)},
        {"geo": geo(str(SANREMO[0]), str(SANREMO[1]))},
        {"geo": f"{SANREMO[0]}, {SANREMO[1]}"},
        {"geo": [geo(10, 10), geo(*SANREMO)]},
        {"location": {"@type": "Place", "name": "Sanremo", "geo": geo(*SANREMO)}},
        {"location": [{"@type": "Place", "geo": geo(*SANREMO)}]},
        {"location": {"@type": "Event", "location": {"geo": geo(*SANREMO)}}},
        {"areaServed": {"@type": "GeoCircle", "geoMidpoint": geo(*SANREMO), "geoRadius": 500}},
        {"geo": None, "location": {"latitude": SANREMO[0], "longitude": SANREMO[1]}},
        [{"geo": geo(*SANREMO)}],
        {"@graph": [{"@type": "WebPage"}, {"geo": geo(*SANREMO)}]},
    ],
)
def test_points_are_found_in_every_form(item: Any) -> None:
    away = kilometres(TAGGIA, SANREMO)
    assert NEAR.factor(item, NOW, TAGGIA) == pytest.approx(1 - 0.4 * (1 - 0.5 ** (away / 10)))
    assert NEAR.factor(item, NOW, None) == 1.0
    assert NEAR.factor(item, NOW, SANREMO) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "item",
    [
        {},
        {"geo": "Sanremo"},
        {"geo": geo(91, 0)},
        {"geo": geo(0, 181)},
        {"geo": geo("nan", "inf")},
        {"geo": geo(True, False)},
        {"geo": geo(None, 7)},
        {"geo": {"latitude": 43.8}},
        {"location": "Sanremo"},
        "text",
        None,
        [None, 5],
    ],
)
def test_an_item_without_a_place_is_left_as_it_is(item: Any) -> None:
    assert NEAR.factor(item, NOW, TAGGIA) == 1.0
    assert NEWS.factor(item, NOW, TAGGIA) == 1.0


def test_a_path_leads_into_an_item() -> None:
    offered = Signal("Distance", ("itemOffered.geo",), 10.0, 0.4)
    assert offered.factor({"itemOffered": [{"geo": geo(0, 0)}]}, NOW, (0.0, 0.0)) == 1.0
    assert offered.factor({"itemOffered": {"geo": geo(0, 90)}}, NOW, (0.0, 0.0)) == pytest.approx(0.6)


def test_distances_on_earth() -> None:
    assert kilometres((0, 0), (0, 90)) == pytest.approx(10_007.6, abs=0.1)  # a quarter of the equator
    assert kilometres((90, 0), (-90, 0)) == pytest.approx(20_015.1, abs=0.1)
    assert kilometres((10, 179.9), (10, -179.9)) == pytest.approx(21.9, abs=0.1)
    assert kilometres(TAGGIA, SANREMO) == pytest.approx(6.8, abs=0.1)
    assert kilometres((12.3, 45.6), (12.3, 45.6)) == 0


def test_signals_multiply_and_none_leaves_all() -> None:
    item = {"datePublished": "1926", "geo": geo(0, 90)}
    assert factor([NEWS, NEAR], item, NOW, (0.0, 0.0)) == pytest.approx(0.36)
    assert factor([], item, NOW, (0.0, 0.0)) == 1.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12h", 12 * 3600),
        ("30d", 30 * DAY),
        (" 2 w ", 14 * DAY),
        ("1.5y", 1.5 * 365.25 * DAY),
        ("0d", None),
        ("30", None),
        ("d", None),
        ("-3d", None),
        ("30 days", None),
        ("1e3d", None),
        ("9999999d", None),
        ("", None),
    ],
)
def test_durations(text: str, expected: float | None) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("500m", 0.5), ("10km", 10), ("1 mi", 1.609344), ("0km", None), ("10", None), ("10 km away", None)],
)
def test_lengths(text: str, expected: float | None) -> None:
    assert length(text) == (expected if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("44.4,8.9", (44.4, 8.9)),
        (" -44.4 , +8.9 ", (-44.4, 8.9)),
        ("90,180", (90, 180)),
        ("91,0", None),
        ("0,181", None),
        ("44.4", None),
        ("44.4,8.9,3", None),
        ("nan,nan", None),
        ("Genova", None),
        ("", None),
    ],
)
def test_places(text: str, expected: tuple[float, float] | None) -> None:
    assert place(text) == expected


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just("2020-02-02"),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(
                    ["geo", "location", "latitude", "longitude", "datePublished", "@graph", "@value"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=20,
    )
)
def test_whatever_an_item_is_the_factor_stays_in_its_bounds(item: Any) -> None:
    assert 0.6 <= NEWS.factor(item, NOW, TAGGIA) <= 1
    assert 0.6 <= NEAR.factor(item, NOW, TAGGIA) <= 1


def test_a_time_without_a_zone_is_utc() -> None:
    assert moment("2026-11-29T12:00") == NOW == moment("2026-11-29T13:00+01:00")
