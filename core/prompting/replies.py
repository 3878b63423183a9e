"""From a prompt's `returnStruc` to a JSON schema, and from what a model wrote to values of that schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal

import json_repair

from core.errors import BadModelReply
from core.prompting import coercion
from core.prompting.coercion import Miss
from core.prompting.refs import Key, lookup

ShapeKind = Literal["boolean", "integer", "number", "text", "choice", "list", "object", "any"]

# A reply longer than this is not looked at to its end, an object longer than that is not repaired.
MAX_REPLY = 400_000
MAX_REPAIR = 60_000
MAX_REPAIRS = 8
MAX_PIECES = 50
MAX_LOOSE = 8_000

BOOLEAN = re.compile(
    r"^\W*(?:boolean\b|bool\b|(?:true|false|yes|no)\s*(?:or|/|\||,)\s*(?:true|false|yes|no)\b)", re.I
)
RANGE = re.compile(
    r"^\W*(?:an?\s+)?(integer|int|whole number|number|float|score)\b[^0-9-]{0,20}?"
    r"(-?\d+(?:\.\d+)?)\s*(?:and|to|-|–|\.\.)\s*(-?\d+(?:\.\d+)?)",
    re.I,
)
PLAIN_NUMBER = re.compile(r"^\W*(?:an?\s+)?(integer|int|whole number|number|float)\b", re.I)
NO_LETTERS = re.compile(r"[\W_]+")
SHORT_KEY = 60
CHOICE = re.compile(r"^\s*[\w-]+(?:\s*\|\s*[\w-]+)+\s*$")


@dataclass(frozen=True)
class Shape:
    """What one key of a reply holds. `says` is the author's own description of it."""

    kind: ShapeKind
    says: str = ""
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    items: Shape | None = None
    fields: tuple[tuple[str, Shape], ...] = ()

    @cached_property
    def json_schema(self) -> dict[str, Any]:
        """This shape as JSON schema; objects with named keys are closed and all keys required.

        What the author says of a key is not in it: the system message says that, and once is enough.
        """
        schema: dict[str, Any] = {}
        if self.kind == "list":
            schema = {"type": "array", "items": (self.items or TEXT).json_schema}
        elif self.kind == "object":
            schema = {"type": "object"}
            if self.fields:
                schema |= {
                    "properties": {name: shape.json_schema for name, shape in self.fields},
                    "required": [name for name, _ in self.fields],
                    "additionalProperties": False,
                }
        elif self.kind == "choice":
            schema = {"type": "string", "enum": list(self.choices)}
        elif self.kind in ("integer", "number"):
            schema = {"type": self.kind}
            if self.low is not None and self.high is not None:
                cast = int if self.kind == "integer" else float
                schema |= {"minimum": cast(self.low), "maximum": cast(self.high)}
        elif self.kind != "any":
            schema = {"type": {"boolean": "boolean", "text": "string"}[self.kind]}
        return schema

    def coerce(self, value: Any) -> Any:
        """The value in this shape; Miss where it cannot be."""
        match self.kind:
            case "boolean":
                return coercion.to_boolean(value)
            case "integer":
                return coercion.to_integer(value, self.low, self.high)
            case "number":
                return coercion.to_number(value, self.low, self.high)
            case "text":
                return coercion.to_text(value)
            case "choice":
                return coercion.to_choice(value, self.choices)
            case "list":
                inner = self.items or TEXT
                given = coercion.to_list(value)
                done = list(inner.coerce_each(given))
                if given and not done:
                    raise Miss("a list")  # with nothing in it that can be used: it is no empty one
                return done
            case "object":
                return self.coerce_object(value)
            case _:
                return coercion.sane(value)

    def coerce_each(self, values: list[Any]) -> Iterator[Any]:
        """Elements that cannot be are left out: the others still count."""
        for value in values:
            try:
                yield self.coerce(value)
            except Miss:
                continue

    def coerce_object(self, value: Any) -> dict[str, Any]:
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                raise Miss("an object") from None
        if not isinstance(value, Mapping):
            raise Miss("an object")
        if not self.fields:
            return dict(coercion.sane(value))
        given = by_plain_name(value)
        done: dict[str, Any] = {}
        for name, shape in self.fields:
            try:
                done[name] = shape.coerce(given.get(plain_name(name)))
            except Miss:
                done[name] = None
        return done

    @property
    def empty(self) -> Any:
        """What stands for a key that may be absent and is."""
        return {"text": "", "choice": "", "list": [], "object": {}}.get(self.kind)


TEXT = Shape("text")
SCORE = Shape("integer", low=0, high=100)


def shape_of(value: Any) -> Shape:
    """The shape that one value of a `returnStruc` describes."""
    if isinstance(value, bool):
        return Shape("boolean")
    if isinstance(value, int | float):
        return Shape("integer" if isinstance(value, int) else "number")
    if isinstance(value, list):
        return Shape("list", items=shape_of(value[0]) if value else TEXT)
    if isinstance(value, dict):
        return Shape("object", fields=tuple((str(key), shape_of(one)) for key, one in value.items()))
    if not isinstance(value, str):
        return TEXT
    return shape_of_words(value)


def shape_of_words(words: str) -> Shape:
    """ "True or False", "integer between 0 and 100", "a | b | c"; everything else is a text."""
    says = " ".join(words.split())
    if BOOLEAN.match(says):
        return Shape("boolean", says)
    ranged = RANGE.match(says)
    if ranged:
        low, high = sorted((float(ranged[2]), float(ranged[3])))
        kind: ShapeKind = "number" if ranged[1].casefold() in ("number", "float") else "integer"
        return Shape(kind, says, low, high)
    plain = PLAIN_NUMBER.match(says)
    if plain:
        return Shape("number" if plain[1].casefold() in ("number", "float") else "integer", says)
    if CHOICE.match(says):
        return Shape("choice", choices=tuple(dict.fromkeys(one.strip() for one in says.split("|"))))
    return Shape("text", says)


@dataclass(frozen=True)
class ReplySchema:
    """The reply a prompt asks for: a flat object of `shapes`; `musts` are the keys without which it is a
    miss.

    `name` is the prompt's ref, used in messages and as the schema's name for the endpoint.
    """

    name: str
    shapes: tuple[tuple[str, Shape], ...]
    musts: frozenset[str]

    @classmethod
    def of(cls, ref: str, struct: Mapping[str, Any]) -> ReplySchema:
        """From a parsed `returnStruc`. For keys that a step reads, what the step needs goes before what the
        author wrote, so that a step always gets a bool where it wants one."""
        asked = lookup(ref)
        needed = asked.keys if asked else {}
        shapes = {str(key): fitted(shape_of(value), needed.get(str(key))) for key, value in struct.items()}
        musts = {key for key in shapes if must(key, shapes[key], needed)}
        return cls(ref, tuple(shapes.items()), frozenset(musts))

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(key for key, _ in self.shapes)

    @cached_property
    def json_schema(self) -> dict[str, Any]:
        """JSON schema of one reply (shared: not to be changed)."""
        return Shape("object", fields=self.shapes).json_schema

    @cached_property
    def example(self) -> str:
        """The reply as an author's sketch, for endpoints that take no schema."""
        return json.dumps(
            {key: sketch(shape) for key, shape in self.shapes}, ensure_ascii=False, separators=(", ", ": ")
        )

    def batch_schema(self, tag_key: str = "tag") -> dict[str, Any]:
        """JSON schema of the replies to a batch: `{"items": [{tag, ...keys}]}`, an object on top because
        json_schema modes want one."""
        return self._batch_schema if tag_key == "tag" else self.schema_of_batch(tag_key)

    @cached_property
    def _batch_schema(self) -> dict[str, Any]:
        return self.schema_of_batch("tag")

    def schema_of_batch(self, tag_key: str) -> dict[str, Any]:
        one = Shape("object", fields=((tag_key, TEXT), *self.shapes))
        return Shape("object", fields=(("items", Shape("list", items=one)),)).json_schema

    def coerce(self, obj: Any) -> dict[str, Any]:
        """One object of a reply in this schema, other keys left out. Raises BadModelReply naming the miss."""
        if not isinstance(obj, Mapping):
            raise BadModelReply(f"`{self.name}`: an object was asked for, came {short(obj)}")
        given = by_plain_name(obj)
        if not any(plain_name(key) in given for key in self.keys):
            raise BadModelReply(f"`{self.name}`: none of {', '.join(self.keys)} is in {short(obj)}")
        return {key: self.coerce_key(key, shape, given) for key, shape in self.shapes}

    def coerce_key(self, key: str, shape: Shape, given: Mapping[str, Any]) -> Any:
        name = plain_name(key)
        if name not in given:
            if key in self.musts:
                raise BadModelReply(f"`{self.name}`: `{key}` is missing", field=key)
            return shape.empty
        value = given[name]
        try:
            done = shape.coerce(value)
        except Miss as miss:
            if key not in self.musts:
                return shape.empty
            raise BadModelReply(
                f"`{self.name}`: `{key}` should be {miss}, came {short(value)}", field=key
            ) from None
        # `null` is no list, be it an empty one.
        if key in self.musts and (done in ("", None) or (value is None and done == [])):
            raise BadModelReply(f"`{self.name}`: `{key}` is empty", field=key)
        return done

    def parse(self, text: str, about: Sequence[str] = ()) -> dict[str, Any]:
        """A whole reply in this schema. Of several objects the last complete one that has what must be there;
        a truncated one only where there is no such. A text without any object has to name one of the things
        it is `about`. Raises BadModelReply, and nothing else."""
        text = text[:MAX_REPLY]
        missed: BadModelReply | None = None
        for candidate in candidates(text):
            for obj in with_inner(candidate):
                try:
                    return self.coerce(obj)
                except BadModelReply as miss:
                    missed = better(missed, miss)
        loose = self.read_loosely(without_thinking(text)[:MAX_LOOSE], about)
        if loose is not None:
            return loose
        raise missed or BadModelReply(f"`{self.name}`: no {', '.join(self.keys)} in the reply {short(text)}")

    def read_loosely(self, text: str, about: Sequence[str] = ()) -> dict[str, Any] | None:
        """A reply without any object: lines or tags (`score: 85`, `<score>85</score>`), or, where one key is
        all that must be there, the bare value."""
        given = {key: found for key in self.keys if (found := line_of(key, text)) is not None}
        if not given and len(self.musts) == 1 and "{" not in text and text.strip():
            (key,) = self.musts
            shape = dict(self.shapes)[key]
            bare = shape.kind in ("boolean", "integer", "number") and len(text) < 300
            if bare or (key in PROSE and shape.kind == "text" and speaks_of(text, about)):
                given = {key: text.strip()}
        try:
            return self.coerce(given) if given else None
        except BadModelReply:
            return None


# Long texts for a reader: where the model answers with nothing but the text, that is the value.
PROSE = frozenset({"answer", "summary", "comparison", "description"})


def speaks_of(text: str, names: Sequence[str]) -> bool:
    """Whether a text has a word of one of these names in it (of unspaced scripts two letters); without names
    to go by it may be about anything."""
    said = words_of(text)
    known = [longer_of(words) for name in names if (words := words_of(name))]
    return not known or any(said & words for words in known)


def words_of(text: str) -> set[str]:
    """The words of a text; of unspaced scripts pairs of letters."""
    pairs = {run[at : at + 2] for run in UNSPACED.findall(text) for at in range(len(run) - 1)}
    return pairs | set(WORD.findall(UNSPACED.sub(" ", text.casefold())))


def longer_of(words: set[str]) -> set[str]:
    """Without "the" and "for", where there is more to a name."""
    return {word for word in words if len(word) > 3 or UNSPACED.match(word)} or words


WORD = re.compile(r"[^\W_]+")
UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]+")


def fitted(shape: Shape, key: Key | None) -> Shape:
    """What the author described, in the kind the step needs."""
    if key is None or key.kind == "any":
        return shape
    if key.kind == "score":
        return SCORE if shape.kind not in ("integer", "number") or shape.high is None else shape
    if key.kind == "boolean":
        return Shape("boolean", shape.says)
    if key.kind == "list":
        return shape if shape.kind == "list" else Shape("list", shape.says, items=TEXT)
    return shape if shape.kind in ("text", "choice") else Shape("text", shape.says)


def must(key: str, shape: Shape, needed: Mapping[str, Key]) -> bool:
    """Keys a step needs; of a prompt of the site's own, those that have no sensible empty value."""
    if needed:
        return key in needed and needed[key].must
    return shape.kind in ("boolean", "integer", "number")


def sketch(shape: Shape) -> Any:
    if shape.kind == "list":
        return [sketch(shape.items or TEXT)]
    if shape.kind == "object":
        return {name: sketch(one) for name, one in shape.fields}
    if shape.kind == "choice":
        return " | ".join(shape.choices)
    if shape.kind in ("integer", "number") and not shape.says:
        return f"integer between {shape.low:g} and {shape.high:g}" if shape.high is not None else shape.kind
    return shape.says or {"boolean": "True or False"}.get(shape.kind, "string")


# ---------------------------------------------------------------- finding objects in a reply

THOUGHT_START = re.compile(r"<(?:think|thinking|thought|reasoning|reflection)>", re.I)
THOUGHT_END = re.compile(r"</(?:think|thinking|thought|reasoning|reflection)>", re.I)


def without_thinking(text: str) -> str:
    """The reply without its thinking, which may lack its opening tag; thinking that never ends is all there
    is from there on."""
    start = THOUGHT_START.search(text)
    ends = [end.end() for end in THOUGHT_END.finditer(text)]
    if not ends:
        return text[: start.start()] if start else text
    after = text[ends[-1] :]
    before = text[: start.start()] if start else ""
    return after if "{" in after or not before.strip() else f"{before} {after}"


def candidates(text: str) -> Iterator[Any]:
    """The objects (or arrays) in a reply, most trustworthy first: the whole text, then each complete object
    from the last to the first, then a truncated one, each repaired where it must be."""
    whole = strict(text.strip())
    if isinstance(whole, dict | list):
        yield whole
        return
    text = without_thinking(text)
    if isinstance(whole, str):
        text = whole  # JSON inside a JSON string
    complete, rest = objects_in(text)
    repairs = 0
    for piece in reversed(complete[-MAX_PIECES:]):
        found = strict(piece)
        if found is None and repairs < MAX_REPAIRS:
            repairs += 1
            found = repaired(piece)
        yield found
    if rest:
        yield repaired(without_cut_value(rest[:MAX_REPAIR]))


def objects_in(text: str) -> tuple[list[str], str]:
    """The complete top-level `{...}` and `[{...}]` of a text, and a last one that is not closed ("" if
    none)."""
    found: list[str] = []
    at = 0
    unquoted = len(text)
    while True:
        start = OPENING.search(text, at)
        if start is None:
            return found, ""
        end, unquoted = closing(text, start.start(), unquoted)
        if end is None:
            return found, text[start.start() :]
        found.append(text[start.start() : end])
        at = end


OPENING = re.compile(r"\{|\[\s*\{")
MARKS = re.compile(r'[{}\[\]]|"(?:[^"\\]|\\.)*+(?P<closed>")?', re.S)
BRACKETS = re.compile(r"[{}\[\]]")


def closing(text: str, start: int, unquoted: int) -> tuple[int | None, int]:
    """Where the bracket at `start` is closed; double-quoted strings are stepped over. From `unquoted` on no
    quote is closed any more, and none is looked at: also returned, as far as it is known then."""
    depth = 0
    at = start
    while True:
        mark = (MARKS if at < unquoted else BRACKETS).search(text, at)
        if mark is None:
            return None, unquoted
        at = mark.end()
        sign = mark.group()
        if sign in "{[":
            depth += 1
        elif sign in "}]":
            depth -= 1
            if depth == 0:
                return at, unquoted
        elif not mark["closed"]:
            at = unquoted = mark.start() + 1


def strict(text: str) -> Any:
    """The text as JSON, or None."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def repaired(text: str) -> Any:
    """What can be made of broken JSON, or None."""
    if len(text) > MAX_REPAIR or text.count("{") + text.count("[") > 2000:
        return None
    try:
        return json_repair.loads(text, skip_json_loads=True)
    except (ValueError, RecursionError, TypeError, IndexError, KeyError, AttributeError):
        return None


CUT_NUMBER = re.compile(r"[-+]?(?<![\d.])[\d.]++(?:[eE][-+]?\d*)?\s*$")


def without_cut_value(text: str) -> str:
    """A truncated object without the number it ends in: `{"score": 8` may have been 85."""
    return CUT_NUMBER.sub("", text)


def with_inner(found: Any, depth: int = 0) -> Iterator[Any]:
    """An object, then those inside it (`{"result": {...}}`); of an array the last first."""
    if isinstance(found, Mapping):
        yield found
        if depth < 3:
            for inner in found.values():
                if isinstance(inner, Mapping | list):
                    yield from with_inner(inner, depth + 1)
    elif isinstance(found, list) and depth < 4:
        for one in reversed(found[-200:]):
            yield from with_inner(one, depth + 1)


def plain_name(key: str) -> str:
    """`Is Memory Request`, `isMemoryRequest` and `is_memory_request` are one key."""
    return _known_name(key) if len(key) <= SHORT_KEY else _plain_name(key)


def _plain_name(key: str) -> str:
    return NO_LETTERS.sub("", key).casefold()


# The same few keys come in every reply; a long one that a model made up is none of them.
_known_name = lru_cache(maxsize=1024)(_plain_name)


def by_plain_name(obj: Mapping[Any, Any]) -> dict[str, Any]:
    return {plain_name(str(key)): value for key, value in obj.items()}


def better(first: BadModelReply | None, second: BadModelReply) -> BadModelReply:
    """The miss that tells more: one that names a key goes before one that names none."""
    return second if first is None or (first.field is None and second.field is not None) else first


def line_of(key: str, text: str) -> str | None:
    words = re.escape(key).replace("_", "[ _-]?")
    begun = re.search(rf"<{words}>", text, re.I)
    ended = re.compile(rf"</{words}>", re.I).search(text, begun.end()) if begun else None
    if begun and ended:
        said = text[begun.end() : ended.start()]
    elif line := re.search(rf"^[ \t>*#\"'`-]*{words}[\"'`*]*[ \t]*[:=][ \t]*(.+)$", text, re.I | re.M):
        said = line[1]
    else:
        return None
    return said.strip(" \t\r\"'`*,")


def short(value: Any) -> str:
    """What came, for a message: at most 80 characters of it."""
    text = value if isinstance(value, str) else repr(value)[:400]
    text = " ".join(text.split())
    return f"`{text[:80]}…`" if len(text) > 80 else f"`{text}`"
