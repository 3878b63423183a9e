"""An answer in the terminal: its frames as lines, as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from server.cli.output import Output

Frame = Mapping[str, Any]
# What a program reads of an item beside these is in `--json`.
UNTOLD = frozenset({"schema_object", "document_id", "site"})


class Answer:
    """Prints frames of the legacy dialect; `failed` is the last `error` among them."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._items: dict[str, Frame] = {}
        self._writing = False  # in the middle of a line of the written answer
        self.failed: Frame | None = None

    def show(self, frame: Frame) -> None:
        """Print one frame; of a kind that says nothing to a reader, nothing."""
        kind = frame["message_type"]
        if self._writing and kind != "nlws_delta":
            self._output.line()
            self._writing = False
            if kind == "nlws":
                self._sources(frame)
                return
        if (show := _SHOWN.get(kind)) is not None:
            show(self, frame)

    def _begun(self, frame: Frame) -> None:
        if frame["llm"] == "none":
            self._output.note("(no language model is configured: results come straight from search)")

    def _rewritten(self, frame: Frame) -> None:
        self._output.note(f"Searched for: {frame['decontextualized_query']}")

    def _said(self, frame: Frame) -> None:
        self._output.note(frame["message"])

    def _told(self, frame: Frame) -> None:
        self._output.line(frame["message"])

    def _remembered(self, frame: Frame) -> None:
        agree = "(facts are remembered on the page, where you can agree)"
        self._output.note(agree if frame.get("confirm") else frame["message"])

    def _memories(self, frame: Frame) -> None:
        self._told(frame)
        for one in frame["items"]:
            self._output.line(f"- {one['text']}")

    def _results(self, frame: Frame) -> None:
        for item in frame["results"]:
            self._items[item["document_id"]] = item
            # A person sees results as they come; a program gets them once, in the final order.
            if self._output.terminal:
                self._item(item)

    def _piece(self, frame: Frame) -> None:
        if self._output.terminal:
            self._output.piece(frame["text"])
            self._writing = True

    def _written(self, frame: Frame) -> None:
        self._output.line(frame["answer"])
        self._sources(frame)

    def _sources(self, frame: Frame) -> None:
        for place, source in enumerate(frame["items"], 1):
            self._output.line(f"[{source.get('n', place)}] {source['name']}  {source['url']}")

    def _asked(self, frame: Frame) -> None:
        self._told(frame)
        for question in frame["questions"]:
            options = question.get("options") or []
            self._output.line(f"- {question['text']}" + (f" ({', '.join(options)})" if options else ""))

    def _details(self, frame: Frame) -> None:
        self._output.line(f"{frame['name']}  {frame['url']}", style="bold")
        self._lines(frame["details"])

    def _comparison(self, frame: Frame) -> None:
        for side in (frame["item1"], frame["item2"]):
            self._output.line(f"{side['name']}  {side['url']}", style="bold")
        self._lines(frame["comparison"])

    def _ensemble(self, frame: Frame) -> None:
        self._lines(frame["result"].get("recommendations", frame["result"]))

    def _error(self, frame: Frame) -> None:
        self.failed = frame

    def _end(self, frame: Frame) -> None:
        order = frame["order"]
        final = [self._items[document_id] for document_id in order if document_id in self._items]
        if not self._output.terminal:
            for item in final:
                self._item(item)
        elif list(self._items) != order:
            self._output.note("Best first:")
            for place, item in enumerate(final, 1):
                self._output.note(f"{place:3}. {item['name']}")

    def _item(self, item: Frame) -> None:
        score = f"{item['score']:5.1f}" if "score" in item else "     "
        self._output.line(f"{score}  {item['name']}", style="bold")
        self._output.line(f"       {item['url']}")
        self._output.line(f"       {' '.join(item['description'].split())}")

    def _lines(self, value: Any) -> None:
        for line in _outlined(value):
            self._output.line(line)


def _outlined(value: Any, indent: str = "") -> Iterator[str]:
    """A text, list or object of a model's reply as lines, what is inside further in."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key in UNTOLD or inner in ("", None, [], {}):
                continue
            name = str(key).replace("_", " ")
            if isinstance(inner, Mapping | list):
                yield f"{indent}{name}:"
                yield from _outlined(inner, indent + "  ")
            else:
                yield f"{indent}{name}: {inner}"
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for one in value:
            first, *rest = list(_outlined(one)) or [""]
            yield f"{indent}- {first}"
            yield from (f"{indent}  {line}" for line in rest)
    else:
        yield f"{indent}{value}"


_SHOWN: Mapping[str, Callable[[Answer, Frame], None]] = {
    "api_version": Answer._begun,
    "asking_sites": Answer._said,
    "decontextualized_query": Answer._rewritten,
    "remember": Answer._remembered,
    "forgotten": Answer._told,
    "memories": Answer._memories,
    "result_batch": Answer._results,
    "summary": Answer._told,
    "nlws_delta": Answer._piece,
    "nlws": Answer._written,
    "item_details": Answer._details,
    "compare_items": Answer._comparison,
    "ensemble_result": Answer._ensemble,
    "ask_user": Answer._asked,
    "site_is_irrelevant_to_query": Answer._told,
    "no_results": Answer._said,
    "error": Answer._error,
    "complete": Answer._end,
}
