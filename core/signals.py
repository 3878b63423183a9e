"""What counts beside relevance where a site's owner says so: how new an item is, and how near.

A signal only takes away: an item keeps all of its score if it is new (or near), if it has no such property,
or if it is not known where the asker is; the older (or further) it is, the nearer its score comes to
`1 - weight` of that. So no site can lift its items over those of others, and a date far in the future wins
nothing. The curve is exponential decay by half-lives, as in Elasticsearch's `exp` decay function.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

Kind = Literal["Recency", "Distance"]
Place = tuple[float, float]
"""Latitude and longitude in degrees (WGS 84)."""

# Properties of schema.org that hold a Date or DateTime, and those that hold a place or a point.
DATES = (
    *("datePublished", "dateModified", "dateCreated", "uploadDate", "datePosted", "contentReferenceTime"),
    *("startDate", "endDate", "validFrom", "validThrough", "releaseDate", "foundingDate", "lastReviewed"),
)
PLACES = (
    *("geo", "location", "areaServed", "contentLocation", "spatialCoverage", "itemLocation", "jobLocation"),
    *("locationCreated", "homeLocation", "workLocation", "fromLocation", "toLocation", "availableAtOrFrom"),
)
DAY_S = 86_400.0
DURATION_S = {"h": 3600.0, "d": DAY_S, "w": 7 * DAY_S, "y": 365.25 * DAY_S}
LENGTH_KM = {"m": 0.001, "km": 1.0, "mi": 1.609344}
EARTH_KM = 6371.0088  # the mean radius of IUGG
MAX_POINTS = 100  # of one item that are looked at
MAX_DEPTH = 4


@dataclass(frozen=True, slots=True)
class Signal:
    """One `<Recency>` or `<Distance>`: from the first of `properties` that an item has, `weight` of its score
    is halved with every `half` (seconds, or km)."""

    kind: Kind
    properties: tuple[str, ...]
    half: float
    weight: float

    def factor(self, item: Any, now: float, near: Place | None) -> float:
        """What the item's score is multiplied with, from `1 - weight` to 1; `now` in seconds since 1970."""
        away = self._age(item, now) if self.kind == "Recency" else self._distance(item, near)
        return 1.0 if away is None else 1 - self.weight * (1 - 0.5 ** (away / self.half))

    def _age(self, item: Any, now: float) -> float | None:
        """Seconds since the latest date of the item; 0 for one that is to come."""
        for name in self.properties:
            times = [at for value in _values(item, name) if (at := moment(value)) is not None]
            if times:
                return max(0.0, now - max(times))
        return None

    def _distance(self, item: Any, near: Place | None) -> float | None:
        """Kilometres to the nearest point of the item."""
        if near is None:
            return None
        for name in self.properties:
            points = [point for value in _values(item, name) for point in _points(value, MAX_DEPTH)]
            if points:
                return min(kilometres(near, point) for point in points[:MAX_POINTS])
        return None


def factor(signals: Iterable[Signal], item: Any, now: float, near: Place | None) -> float:
    """What all of these signals together leave of the item's score."""
    return math.prod(signal.factor(item, now, near) for signal in signals)


def seconds(text: str) -> float | None:
    """Seconds of `12h`, `30d`, `2w`, `1.5y`; None if it is no such duration, or none at all."""
    return _measure(text, DURATION_S)


def length(text: str) -> float | None:
    """Kilometres of `500m`, `10km`, `3mi`; None if it is no such length, or none at all."""
    return _measure(text, LENGTH_KM)


def place(text: str) -> Place | None:
    """`44.4,8.9` as latitude and longitude; None if it is no place on earth."""
    match = re.fullmatch(r"\s*([+-]?\d{1,3}(?:\.\d{1,15})?)\s*,\s*([+-]?\d{1,3}(?:\.\d{1,15})?)\s*", text)
    return _on_earth(float(match[1]), float(match[2])) if match else None


def moment(value: Any) -> float | None:
    """Seconds since 1970 of an ISO 8601 date or time, also of a year or a month alone (their beginning). What
    names no time zone is UTC. None for anything else."""
    if isinstance(value, Mapping):
        value = value.get("@value")
    if not isinstance(value, str):
        return None
    text = value.strip()[:40]
    if re.fullmatch(r"\d{4}(-\d\d)?", text):
        text = f"{text}-01" if "-" in text else f"{text}-01-01"
    try:
        at = datetime.fromisoformat(text)
        # The first year of all is how some programs write that there is no date.
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() if at.year > 1 else None
    except (ValueError, OverflowError):
        return None


def kilometres(one: Place, other: Place) -> float:
    """The great circle's length (haversine formula)."""
    (lat1, lon1), (lat2, lon2) = (tuple(map(math.radians, point)) for point in (one, other))
    half = math.sin((lat2 - lat1) / 2) ** 2
    half += math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    return 2 * EARTH_KM * math.asin(min(1.0, math.sqrt(half)))


def known_property(kind: Kind, path: str) -> bool:
    """Whether an item can have it: a property of the kind's list, or a path that ends in one
    (`itemOffered.geo`)."""
    last = path.rpartition(".")[2]
    return last in (DATES if kind == "Recency" else PLACES) and bool(
        re.fullmatch(r"[A-Za-z]+(\.[A-Za-z]+)*", path)
    )


def _measure(text: str, units: Mapping[str, float]) -> float | None:
    match = re.fullmatch(rf"\s*(\d{{1,6}}(?:\.\d{{1,6}})?)\s*({'|'.join(units)})\s*", text)
    return (float(match[1]) * units[match[2]] or None) if match else None


def _values(item: Any, path: str) -> Iterator[Any]:
    """The values that an item, one of a list, or of a graph has under a path."""
    name, _, rest = path.partition(".")
    for one in _each(item):
        if isinstance(one, Mapping):
            holders = _each(one["@graph"]) if "@graph" in one and name not in one else [one]
            for holder in holders:
                for value in _each(holder.get(name)) if isinstance(holder, Mapping) else ():
                    if rest:
                        yield from _values(value, rest)
                    else:
                        yield value


def _points(value: Any, depth: int) -> Iterator[Place]:
    """The points of a GeoCoordinates, GeoCircle, Place, or a text `lat,lon`, or of a list of them."""
    if isinstance(value, str):
        if (found := place(value)) is not None:
            yield found
    elif isinstance(value, Sequence) and depth:
        for one in value:
            yield from _points(one, depth - 1)
    elif isinstance(value, Mapping) and depth:
        found = _coordinates(value)
        if found is not None:
            yield found
            return
        for name in ("geo", "geoMidpoint", "location"):
            yield from _points(value.get(name), depth - 1)


def _coordinates(value: Mapping[str, Any]) -> Place | None:
    lat, lon = (_degrees(value.get(name)) for name in ("latitude", "longitude"))
    return None if lat is None or lon is None else _on_earth(lat, lon)


def _degrees(value: Any) -> float | None:
    if isinstance(value, Mapping):
        value = value.get("@value")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _on_earth(lat: float, lon: float) -> Place | None:
    return (lat, lon) if -90 <= lat <= 90 and -180 <= lon <= 180 else None


def _each(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]
