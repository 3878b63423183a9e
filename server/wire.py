"""The legacy dialect: messages as NLWeb's clients know them (contract 4.2), streamed or as one object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from core.messages import Header, Item, Message, Results, Started


def frame(message: Message, query_id: str, conversation_id: str) -> dict[str, Any]:
    """One message as a JSON object with `message_type` and `query_id`."""
    if isinstance(message, Header):
        body: dict[str, Any] = {"message_type": message.name, "content": message.content}
    elif isinstance(message, Results):
        body = {"message_type": message.type, "results": [item_frame(item) for item in message.items]}
    else:
        # What has no value is left out, but for fields whose emptiness says something.
        fields = {k: v for k, v in asdict(message).items() if v is not None or k in NULL_FIELDS}
        body = {"message_type": message.type, **fields}
    if isinstance(message, Started):
        body["conversation_id"] = conversation_id
    body["query_id"] = query_id
    return body


NULL_FIELDS = frozenset({"memory_id"})


def item_frame(item: Item) -> dict[str, Any]:
    """An item with NLWeb's field names; `score` is absent where none is known yet (provisional results)."""
    body = {
        "url": item.url,
        "name": item.name,
        "site": item.site,
        "siteUrl": item.site,
        "score": item.score,
        "description": item.description,
        "schema_object": item.schema_object,
        "ranking_type": item.ranking_type,
        "document_id": item.document_id,
        "citations": list(item.citations),
    }
    if item.score is None:
        del body["score"]
    return body


def whole(frames: Iterable[Mapping[str, Any]], query_id: str, conversation_id: str) -> dict[str, Any]:
    """The answer as one object: keys are the message types, `results` the final items, best first."""
    answer: dict[str, Any] = {"query_id": query_id, "conversation_id": conversation_id}
    items: dict[tuple[str, str], Mapping[str, Any]] = {}
    order: list[str] = []
    for one in frames:
        kind = str(one["message_type"])
        if kind == "result_batch":
            items.update({(i["site"], i["document_id"]): i for i in one["results"]})
            continue
        body = {k: v for k, v in one.items() if k not in ("message_type", "query_id")}
        if "content" in body:
            # NLWeb's one-object answer has a header's text under another name than its stream.
            body["message"] = body["content"]
        if kind == "complete":
            order = list(body["order"])
        answer[kind] = body
    place = {document_id: n for n, document_id in enumerate(order)}
    final = [i for i in items.values() if i["document_id"] in place]
    answer["results"] = sorted(final, key=lambda i: place[i["document_id"]])
    return answer
