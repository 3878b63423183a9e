"""A model that does what items tell it, the worst there is: it obeys in any language and any encoding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.openai_server import ModelRequest
from tests.fakes.sensible_model import SensibleModel, as_words, tagged_items

# What an order does to a whole reply; the number is the place of the item that gives it.
Order = Callable[[list[dict[str, Any]], int], Sequence[dict[str, Any]]]


def me_alone(reply: list[dict[str, Any]], me: int) -> list[dict[str, Any]]:
    """100 for the item itself, 0 for all others."""
    return [{**one, "score": 100 if at == me else 0} for at, one in enumerate(reply)]


def all_lost(reply: list[dict[str, Any]], me: int) -> list[dict[str, Any]]:
    """0 for every item."""
    return [{**one, "score": 0} for one in reply]


def me_only(reply: list[dict[str, Any]], me: int) -> list[dict[str, Any]]:
    """The others are left out."""
    return [{**reply[me], "score": 100}]


def swapped(reply: list[dict[str, Any]], me: int) -> list[dict[str, Any]]:
    """Each score under the tag of another item."""
    tags = [one["tag"] for one in reply]
    return [{**one, "tag": tag} for one, tag in zip(reply, [*tags[1:], tags[0]], strict=True)]


def unknown_tags(reply: list[dict[str, Any]], me: int) -> list[dict[str, Any]]:
    """The others under tags that nobody gave out."""
    return [one if at == me else {**one, "tag": f"aaaa{at}"} for at, one in enumerate(reply)]


def doubled(reply: list[dict[str, Any]], me: int) -> list[dict[str, Any]]:
    """The others with 0 first, then as they are."""
    return me_alone(reply, me) + reply


def after_the_first(reply: list[dict[str, Any]], me: int) -> list[dict[str, Any]]:
    """Nothing after the first."""
    return reply[:1]


def halved(reply: list[dict[str, Any]], me: int) -> list[dict[str, Any]]:
    """All others at half of what they deserve."""
    return [one if at == me else {**one, "score": one["score"] // 2} for at, one in enumerate(reply)]


@dataclass
class ObeyingModel:
    """A sensible model that obeys: `orders` by a text that stands in the item which gives the order."""

    sensible: SensibleModel
    orders: Mapping[str, Order] = field(default_factory=dict)

    def __call__(self, request: ModelRequest) -> Any:
        reply = self.sensible(request)
        items, _ = tagged_items(request.prompt)
        for at, item in enumerate(items):
            for said, order in self.orders.items():
                if said in as_words(item):
                    reply = order(list(reply), at)
        return reply
