"""Reads one prompt file, ours or NLWeb's, into prompts, sites and problems; raises nothing."""

from __future__ import annotations

import codecs
import json
import logging
import os
import re
import textwrap
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

from lxml import etree

from core import resources
from core.prompting import schema_types
from core.prompting.examples import ATTRIBUTES, Example, values_of
from core.prompting.refs import COMMON, OLDER_REFS, REFS, STEP_PREFIX, TOOL_PREFIX, lookup
from core.prompting.replies import ReplySchema, short
from core.prompting.schema_types import did_you_mean
from core.prompting.variables import BARE_USE, OLDER_NAMES, USE, VARIABLES, Value, split
from core.providers.base import Tier
from core.signals import DATES, PLACES, Kind, Signal, known_property, length, seconds

Severity = Literal["error", "warning"]

MAX_FILE_BYTES = 2_000_000
SITE_NAME = re.compile(r"[a-z0-9._-]{1,64}")
STEP_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
OWN_VARIABLE = re.compile(r"request\.[A-Za-z][A-Za-z0-9_]{0,63}")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a prompt file that its author should know. An error keeps a file from being used, a
    warning doesn't. Lines and columns count from 1."""

    file: str
    line: int
    col: int
    severity: Severity
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.col}: {self.what}"


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt as it stands in a file. `site` None: for every site. `item_type` is a local name, `Thing`
    the base. `pieces` is the text cut at its variables (see `variables.split`). A step of a site's own has
    the ref `step:NAME`; `sets` is the variable it gives a value, `before` the prompts that wait for it also
    where they don't use that variable."""

    ref: str
    site: str | None
    item_type: str
    text: str
    variables: tuple[str, ...]
    reply: ReplySchema | None
    tier: Tier | None
    temperature: float | None
    max_tokens: int | None
    timeout_s: float | None
    enabled: bool
    examples: tuple[Example, ...]
    file: str
    line: int
    pieces: tuple[str, ...] = ()
    sets: str = ""
    before: tuple[str, ...] = ()

    @property
    def key_set(self) -> str:
        """The key of a step's reply that is its variable's value."""
        keys = self.reply.keys if self.reply else ()
        return keys[0] if len(keys) == 1 else self.sets.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class SiteEntry:
    """What a file says of a site beside its prompts."""

    name: str
    description: str
    types: tuple[str, ...]
    extends: str
    file: str
    line: int
    col: int
    questions: tuple[str, ...] = ()  # to show to people who don't know what to ask


@dataclass(frozen=True, slots=True)
class SignalEntry:
    """What counts beside relevance for the items of a type (of a site; None: of every site)."""

    signal: Signal
    site: str | None
    item_type: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class UnknownUse:
    """A variable that is none of ours: an error, unless a step of this site (or of all) sets it."""

    name: str
    site: str | None
    problem: Problem


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """What a file holds. With an error among its problems, `usable` is False. What is in `unknown` is among
    the problems too, until `without` takes it out."""

    file: str
    prompts: tuple[Prompt, ...] = ()
    sites: tuple[SiteEntry, ...] = ()
    problems: tuple[Problem, ...] = ()
    unknown: tuple[UnknownUse, ...] = ()
    signals: tuple[SignalEntry, ...] = ()

    def without(self, known: Callable[[UnknownUse], bool]) -> ParsedFile:
        """The file without the complaints on variables that are `known` after all."""
        cleared = {use.problem for use in self.unknown if known(use)}
        if not cleared:
            return self
        return replace(
            self,
            problems=tuple(one for one in self.problems if one not in cleared),
            unknown=tuple(use for use in self.unknown if use.problem not in cleared),
        )

    @property
    def usable(self) -> bool:
        return not any(problem.severity == "error" for problem in self.problems)


def printable(name: str) -> str:
    """A file's name for reports: names are bytes, and neither all UTF-8 nor free of line ends."""
    readable = os.fsencode(name).decode("utf-8", "backslashreplace")
    return "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in readable)


def parse_file(path: Path) -> ParsedFile:
    """Read and parse `path`; a file that cannot be read is a problem like any other."""
    try:
        size = path.stat().st_size
        raw = path.read_bytes() if size <= MAX_FILE_BYTES else b""
    except OSError as exc:
        return failed(str(path), 1, 1, f"cannot be read: {exc.strerror}")
    if size > MAX_FILE_BYTES:
        return failed(str(path), 1, 1, f"has {size:,} bytes; prompt files may have {MAX_FILE_BYTES:,}")
    return parse_bytes(raw, str(path))


def parse_bytes(raw: bytes, file: str) -> ParsedFile:
    """Parse the bytes of a prompt file; `file` is its name in problems. Raises nothing."""
    file = printable(file)
    try:
        text = decoded(raw)
    except SourceError as exc:
        return failed(file, exc.line, exc.col, exc.what)
    try:
        root = tree_of(text)
    except SourceError as exc:
        return failed(file, exc.line, exc.col, exc.what)
    try:
        return Reader(file, text, root).read()
    except Exception as exc:
        # Whatever one file holds, it is that file's problem and nobody else's.
        log.exception("prompts.unreadable")
        return failed(file, 1, 1, f"cannot be read ({type(exc).__name__}): it is nested too deep, or too odd")


def failed(file: str, line: int, col: int, what: str) -> ParsedFile:
    file = printable(file)
    return ParsedFile(file, problems=(Problem(file, line, col, "error", what),))


# ---------------------------------------------------------------- text and tree


class SourceError(Exception):
    """The file is no XML that is taken here."""

    def __init__(self, what: str, line: int = 1, col: int = 1) -> None:
        super().__init__(what)
        self.what, self.line, self.col = what, line, col


DECLARED = re.compile(rb"""^\s*<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._:-]+)["']""")
BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
BEFORE_ROOT = re.compile(r"\s*(?:<\?.*?\?>\s*|<!--.*?-->\s*)*", re.S)


def decoded(raw: bytes) -> str:
    """The text of a file by its byte order mark, else its XML declaration, else UTF-8."""
    mark, name = encoding_of(raw)
    raw = raw[len(mark) :]
    try:
        return raw.decode(name).replace("\r\n", "\n").replace("\r", "\n")
    except LookupError:
        raise SourceError(f"unknown encoding `{name}`; save the file as UTF-8") from None
    except UnicodeDecodeError as exc:
        before = raw[: exc.start].decode(name, "ignore")
        line, col = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
        raise SourceError(
            f"not valid {name}: byte 0x{raw[exc.start]:02x}; save the file as UTF-8", line, col
        ) from None
    except ValueError as exc:
        raise SourceError(f"not valid {name}: {exc}; save the file as UTF-8") from None


def encoding_of(raw: bytes) -> tuple[bytes, str]:
    """The byte order mark (or nothing) and the name of the encoding."""
    for mark, name in BOMS:
        if raw.startswith(mark):
            return mark, name
    declared = DECLARED.match(raw[:200])
    return b"", declared[1].decode() if declared else "utf-8"


def tree_of(text: str) -> etree._Element:
    """The root element. A document type (and so every entity of one's own) is refused before it is parsed."""
    start = BEFORE_ROOT.match(text)
    at = start.end() if start else 0
    if text[at : at + 2] == "<!":
        line, col = position(text, at)
        raise SourceError(
            "a document type (`<!DOCTYPE …>`, entities) is not allowed here; remove it", line, col
        )
    parser = etree.XMLParser(
        encoding="utf-8",
        remove_comments=True,
        remove_pis=True,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
    )
    try:
        root = etree.fromstring(text.encode("utf-8", "surrogatepass"), parser)
    except etree.XMLSyntaxError as exc:
        raise syntax_error(text, exc) from None
    except ValueError as exc:
        raise SourceError(str(exc)) from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise SourceError("a document type is not allowed here; remove it")
    return root


WHERE = re.compile(r",? line \d+, column \d+.*$", re.S)
ADVICE = (
    ("Namespace prefix", "declare it in the root, or leave the prefix out"),
    ("xmlParseEntityRef", "a bare `&`: write `&amp;`"),
    ("EntityRef: expecting", "a bare `&`: write `&amp;`"),
    ("not defined", "only &amp; &lt; &gt; &quot; &apos; are known: write the letter itself"),
    ("StartTag: invalid element name", "a bare `<` in a text: write `&lt;`"),
    ("Unescaped '<'", "a bare `<`: write `&lt;`"),
    ("tag mismatch", "each element is closed by its own end tag"),
    ("Premature end", "the file ends before everything is closed"),
    ("Extra content", "everything stands inside one `<root>`"),
    ("Document is empty", "the file is empty: start from `<root></root>`"),
    ("Start tag expected", "the file is no XML: start from `<root></root>`"),
    ("AttValue", "values of attributes stand in quotes"),
    ("attributes construct error", "attributes are parted by white space, values stand in quotes"),
    ("redefined", "an attribute stands once in an element"),
    ("invalid Char", "a control character: remove it"),
    ("Double hyphen", "`--` may not stand inside a comment"),
    ("Comment not terminated", "a comment ends with `-->`"),
    ("CData section not finished", "a CDATA section ends with `]]>`"),
    ("Excessive depth", "elements are nested far too deep"),
    ("]]>", "outside of a CDATA section write `]]&gt;`"),
    ("xmlParseCharRef", "no such character: write the letter itself"),
    ("attribute name", 'an attribute is written name="value"'),
)
# What is always true of a fault that libxml2 has other words for.
GENERAL_ADVICE = "the file has to be well-formed XML: look at the mark-up at this place"


IN_SITE = "inside a `<Site>`"
BELONGS = {
    "promptString": "inside a `<Prompt>` or `<Step>`",
    "returnStruc": "inside a `<Prompt>` or `<Step>`",
    "example": "inside a `<Prompt>`",
    "expect": "inside an `<example>`",
    "Site": "directly in the `<root>`",
}


def syntax_error(text: str, exc: etree.XMLSyntaxError) -> SourceError:
    """What libxml2 says, and what to do about it. Its place is where it stopped, just after the cause."""
    line, column = exc.position
    line = min(max(line, 1), text.count("\n") + 1)
    said = " ".join(WHERE.sub("", exc.msg or "not well-formed").split())
    advice = next((advice for sign, advice in ADVICE if sign in said), GENERAL_ADVICE)
    return SourceError(f"{said} ({advice})", line, max(column, 1))


def position(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1) + 1


TOKEN = re.compile(
    r"""<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<(/?)[^>"'/!?](?:[^>"']|"[^"]*"|'[^']*')*>""", re.S
)


@dataclass(frozen=True, slots=True)
class Span:
    """Where an element stands in the source: its start tag, and what is inside."""

    start: int
    inside: int
    end: int


@dataclass(slots=True)
class Source:
    """The text of a well-formed file, with the places of its elements in document order. lxml knows lines but
    no columns, and its lines are those where a start tag ends."""

    text: str
    blanked: str = ""  # comments and instructions as blanks, so that nothing in them is reported
    spans: list[Span] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.lines = [0, *(found.end() for found in re.finditer("\n", self.text))]
        pieces: list[str] = []
        opened: list[int] = []
        starts: list[list[int]] = []
        at = 0
        for token in TOKEN.finditer(self.text):
            kind = token.group()[:2]
            if kind in ("<!", "<?") and not token.group().startswith("<![CDATA["):
                pieces += (self.text[at : token.start()], " " * (token.end() - token.start()))
                at = token.end()
            elif token[1]:
                starts[opened.pop()][2] = token.start()
            elif kind != "<!":
                starts.append([token.start(), token.end(), token.end()])
                if not token.group().endswith("/>"):
                    opened.append(len(starts) - 1)
        self.blanked = "".join((*pieces, self.text[at:]))
        self.spans = [Span(*one) for one in starts]

    def position(self, at: int) -> tuple[int, int]:
        line = bisect_right(self.lines, at)
        return line, at - self.lines[line - 1] + 1


# ---------------------------------------------------------------- elements

ROOTS = ("root", "Sites", "Tools", "QueryAnalysisSettings")
PROMPTS = ("Prompt", "QueryAnalysis", "Tool", "Step")
PROMPT_ATTRIBUTES = frozenset(
    {"ref", "name", "tier", "enabled", "temperature", "max_tokens", "timeout", "responseModel"}
)
STEP_ATTRIBUTES = frozenset(
    {"ref", "sets", "before", "tier", "enabled", "temperature", "max_tokens", "timeout"}
)
SITE_ATTRIBUTES = frozenset({"ref", "id", "name", "types", "extends"})
SITE_PARTS = ("description", "itemType", "question")
SIGNALS: Mapping[str, str] = {"Recency": "halfLife", "Distance": "halfDistance"}
MAX_SIGNAL_WEIGHT = 0.9
MAX_EXAMPLE_CHARS = 200


class Reader:
    """Walks the tree of one file. Problems are collected: an author sees all of them at once."""

    def __init__(self, file: str, text: str, root: etree._Element) -> None:
        self.file = file
        self.root = root
        self.source = Source(text)
        self.spans = dict(zip(root.iter(), self.source.spans, strict=True))
        self.prompts: list[Prompt] = []
        self.sites: list[SiteEntry] = []
        self.problems: list[Problem] = []
        self.unknown: list[UnknownUse] = []
        self.signals: list[SignalEntry] = []
        self.first: dict[tuple[str | None, str, str], tuple[int, int]] = {}

    def read(self) -> ParsedFile:
        name = local(self.root)
        if name not in ROOTS:
            self.error(
                self.root, f"the root element is `{name}`, not `root`{did_you_mean(name, list(ROOTS))}"
            )
        else:
            self.check_stray_text(self.root)
            for child in self.root:
                if local(child) == "Site":
                    self.read_site(child)
                else:
                    self.read_type_or_prompt(child, None)
        self.problems.sort(key=lambda one: (one.line, one.col))
        parsed = ParsedFile(
            self.file,
            tuple(self.prompts),
            tuple(self.sites),
            tuple(self.problems),
            tuple(self.unknown),
            tuple(self.signals),
        )
        own = {(prompt.site, prompt.sets) for prompt in self.prompts if prompt.sets}
        return parsed.without(lambda use: bool({(use.site, use.name), (None, use.name)} & own))

    def read_site(self, element: etree._Element) -> None:
        names = [element.get(key) for key in ("ref", "id", "name") if element.get(key)]
        name = (names[0] or "").strip() if names else ""
        if not names:
            return self.error(element, '`<Site>` needs a name: `<Site ref="mysite">`')
        self.unknown_attributes(element, SITE_ATTRIBUTES)
        self.check_stray_text(element)
        everywhere = name == "default" and element.get("id") is not None  # NLWeb 2026: for every site
        if not everywhere and not SITE_NAME.fullmatch(name):
            self.error(element, f"`{name}` is no site name: 1 to 64 of a-z 0-9 . _ -")
        if not everywhere:
            self.add_site(element, name)
        for child in element:
            if local(child) not in SITE_PARTS:
                self.read_type_or_prompt(child, None if everywhere else name)
        return None

    def add_site(self, element: etree._Element, name: str) -> None:
        listed = re.split(r"[\s,]+", element.get("types", ""))
        listed += [text_of(child) for child in element if local(child) == "itemType"]
        types = tuple(dict.fromkeys(schema_types.local_name(one) for one in listed if one))
        for one in types:
            if not schema_types.known(one):
                self.warning(
                    element, f"unknown type `{one}`{schema_types.guess(one)}; only the base's prompts hold"
                )
        descriptions = [
            " ".join(text_of(child).split()) for child in element if local(child) == "description"
        ]
        extends = element.get("extends", "").strip()
        at = self.place(element)
        questions = tuple(self.read_questions(element))
        self.sites.append(SiteEntry(name, " ".join(descriptions), types, extends, self.file, *at, questions))

    def read_questions(self, element: etree._Element) -> Iterator[str]:
        """Example questions, each once; one that no button can hold is a problem."""
        seen: set[str] = set()
        for child in element:
            if local(child) != "question":
                continue
            self.unknown_attributes(child, frozenset())
            question = " ".join(text_of(child).split())
            if not question:
                self.error(child, "`<question>` is empty")
            elif len(question) > MAX_EXAMPLE_CHARS:
                what = f"`<question>` has {len(question)} characters; an example may have {MAX_EXAMPLE_CHARS}"
                self.error(child, what)
            elif question.casefold() in seen:
                self.warning(child, f"the question {short(question)} stands here twice")
            else:
                seen.add(question.casefold())
                yield question

    def read_type_or_prompt(self, element: etree._Element, site: str | None) -> None:
        name = local(element)
        if name in PROMPTS:
            return self.read_prompt(element, site, schema_types.BASE)
        if name in SIGNALS:
            return self.read_signal(element, site, schema_types.BASE)
        if name in ("promptString", "returnStruc", "example", "expect", "Site", *SITE_PARTS):
            return self.error(
                element, f"`<{name}>` has no place here: it belongs {BELONGS.get(name, IN_SITE)}"
            )
        item_type = schema_types.local_name(name)
        if not schema_types.known(item_type):
            self.warning(element, f"unknown type `{name}`{schema_types.guess(name)}: no class of schema.org")
        self.check_stray_text(element)
        for child in element:
            if local(child) in PROMPTS:
                self.read_prompt(child, site, item_type)
            elif local(child) in SIGNALS:
                self.read_signal(child, site, item_type)
            else:
                self.error(
                    child, f"`<{local(child)}>` inside `<{name}>`: only `<Prompt>` or `<Step>` may stand here"
                )
        return None

    def read_signal(self, element: etree._Element, site: str | None, item_type: str) -> None:
        """A `<Recency>` or `<Distance>`: the properties, the half-life (or half-distance) and the weight."""
        kind = cast("Kind", local(element))
        self.unknown_attributes(element, frozenset({"property", "weight", SIGNALS[kind]}))
        self.check_stray_text(element)
        for child in element:
            self.error(child, f"`<{local(child)}>` inside `<{kind}>`: nothing stands there")
        properties = self.signal_properties(element, kind)
        half = self.signal_half(element, kind)
        if element.get("weight") is None:
            self.error(element, f'`<{kind}>` needs a weight: `weight="0.3"`')
        weight = self.number(element, "weight", 0, MAX_SIGNAL_WEIGHT)
        key = (site, item_type, kind)
        if key in self.first:
            line, _ = self.first[key]
            self.warning(
                element, f"a second `<{kind}>` for {item_type}: also in line {line}; the last one holds"
            )
        self.first[key] = self.place(element)
        if properties and half is not None and weight is not None:
            signal = Signal(kind, properties, half, weight)
            self.signals.append(SignalEntry(signal, site, item_type, self.file, self.place(element)[0]))

    def signal_properties(self, element: etree._Element, kind: Kind) -> tuple[str, ...]:
        names = names_in(element.get("property", ""))
        known = DATES if kind == "Recency" else PLACES
        if not names:
            self.error(element, f'`<{kind}>` needs a property of the items: `property="{known[0]}"`')
        for name in names:
            if not known_property(kind, name):
                holds = "a date" if kind == "Recency" else "a place"
                near = did_you_mean(name.rpartition(".")[2], known) or f" ({', '.join(known[:3])}, …)"
                self.error(element, f'property="{name}": no property that holds {holds}{near}')
        return names

    def signal_half(self, element: etree._Element, kind: Kind) -> float | None:
        name, given = SIGNALS[kind], element.get(SIGNALS[kind], "")
        half = seconds(given) if kind == "Recency" else length(given)
        if half is None:
            what = "h, d, w or y, such as `30d`" if kind == "Recency" else "m, km or mi, such as `10km`"
            self.error(element, f'{name}="{given}": a number above 0 with {what}')
        return half

    def read_prompt(self, element: etree._Element, site: str | None, item_type: str) -> None:
        tool, step = local(element) == "Tool", local(element) == "Step"
        ref = (element.get("name" if tool else "ref") or "").strip()
        if not ref:
            example = '`<Tool name="…">`' if tool else f'`<{local(element)} ref="…">`'
            return self.error(element, f"`<{local(element)}>` says not which one it is: {example}")
        ref = TOOL_PREFIX + ref if tool else STEP_PREFIX + ref if step else ref
        self.unknown_attributes(element, STEP_ATTRIBUTES if step else PROMPT_ATTRIBUTES)
        self.check_ref(element, ref, site, item_type)
        string = self.only_child(element, "prompt" if tool else "promptString")
        if string is None and not tool:
            return self.error(element, f"`{ref}` has no text: it needs a `<promptString>`")
        text = text_of(string).strip() if string is not None else ""
        if string is not None:
            self.check_variables(string, ref, site)
        self.check_children(element)
        reply = self.read_reply(element, ref)
        if step:
            self.check_step(element, ref, reply)
        pieces = split(outdented(text))
        if string is not None and not text:
            self.error(string, f"`{ref}` has no text in its `<promptString>`")
        self.prompts.append(
            Prompt(
                ref=ref,
                site=site,
                item_type=item_type,
                text=text,
                variables=tuple(dict.fromkeys(pieces[1::2])),
                reply=reply,
                tier=self.tier(element),
                temperature=self.number(element, "temperature", 0, 2),
                max_tokens=whole(self.number(element, "max_tokens", 1, 200_000)),
                timeout_s=self.number(element, "timeout", 0.1, 600),
                enabled=self.flag(element, "enabled"),
                examples=tuple(self.read_examples(element, reply, site)) if not tool else (),
                file=self.file,
                line=self.place(element)[0],
                pieces=pieces,
                sets=element.get("sets", "").strip() if step else "",
                before=names_in(element.get("before", "")) if step else (),
            )
        )
        return None

    def check_step(self, element: etree._Element, ref: str, reply: ReplySchema | None) -> None:
        """What a step needs beside a text: a name, a variable to set, one key to set it from."""
        name, sets = ref.removeprefix(STEP_PREFIX), element.get("sets", "").strip()
        if not STEP_NAME.fullmatch(name):
            self.error(element, f"`{name}` is no step name: a letter, then letters, digits, `_`, `-`")
        if not OWN_VARIABLE.fullmatch(sets):
            self.error(element, f'sets="{sets}": a step sets a variable of its own, such as `request.season`')
        elif sets in VARIABLES or sets in OLDER_NAMES:
            self.error(element, f'sets="{sets}": that variable has a value already; choose another name')
        last = sets.rpartition(".")[2]
        if reply is None:
            self.error(element, f'a step needs a returnStruc with one key: `{{"{last}": "what it is"}}`')
        elif len(reply.keys) > 1 and last not in reply.keys:
            self.error(
                element, f"which of {listed(reply.keys)} is the value? Name it `{last}`, or keep one key"
            )
        for one in names_in(element.get("before", "")):
            if lookup(one) is None:
                self.warning(
                    element, f'before="{one}": no prompt has this ref{did_you_mean(one, list(REFS))}'
                )

    def check_ref(self, element: etree._Element, ref: str, site: str | None, item_type: str) -> None:
        known = lookup(ref)
        if known is None:
            self.warning(element, f"unknown ref `{ref}`{did_you_mean(ref, list(REFS))}: no step runs it")
        elif ref in OLDER_REFS:
            self.warning(element, f"`{ref}` is one of NLWeb's that no step runs here")
        elif not known.run and self.file != str(resources.site_types()):
            self.warning(element, f"no step runs `{ref}` here: it changes no answer")
        key = (site, item_type, ref)
        if key in self.first:
            line, _ = self.first[key]
            self.warning(
                element, f"duplicate `{ref}` for {item_type}: also in line {line}; the last one holds"
            )
        self.first[key] = self.place(element)

    def check_variables(self, string: etree._Element, ref: str, site: str | None) -> None:
        span = self.spans[string]
        asked = lookup(ref)
        for use in USE.finditer(self.source.blanked, span.inside, span.end):
            name = use[1]
            if name in OLDER_NAMES:
                self.add(
                    use.start(), "warning", f"`{{{name}}}` is an older name of `{{{OLDER_NAMES[name]}}}`"
                )
            elif name not in VARIABLES:
                self.add(use.start(), "error", f"unknown variable `{{{name}}}`{guess_variable(name)}")
                self.unknown.append(UnknownUse(name, site, self.problems[-1]))
            elif (
                asked and (asked.keys or ref.startswith(STEP_PREFIX)) and name not in COMMON | asked.variables
            ):
                self.add(
                    use.start(), "warning", f"`{{{name}}}` has no value in `{ref}`; it is filled as (none)"
                )
        for use in BARE_USE.finditer(self.source.blanked, span.inside, span.end):
            near = guess_variable(use[1])
            if near:
                self.add(use.start(), "warning", f"`{use.group()}` is no variable and stays as it is{near}")

    def check_stray_text(self, element: etree._Element) -> None:
        """Text where only elements stand is lost; its author should know."""
        for text in (element.text, *(child.tail for child in element)):
            if text and text.strip():
                found = short(" ".join(str(text).split()))
                return self.error(
                    element, f"the text {found} stands directly in `<{local(element)}>`; move it"
                )
        return None

    def check_children(self, element: etree._Element) -> None:
        self.check_stray_text(element)
        known = ["promptString", "returnStruc", "example", "method", "description"]
        if local(element) == "Tool":
            known += ["prompt", "handler", "argument", "path"]
        for child in element:
            if local(child) not in known:
                near = did_you_mean(local(child), known)
                self.error(child, f"`<{local(child)}>` inside `<{local(element)}>` is unknown{near}")

    def read_reply(self, element: etree._Element, ref: str) -> ReplySchema | None:
        """The reply structure. Where the author gives none (NLWeb 2026 names a class of its own instead),
        what the step reads stands in; where it is broken there is none, and that is an error if a step needs
        it."""
        child = self.only_child(element, "returnStruc")
        asked = lookup(ref)
        needed = asked.keys if asked else {}
        text = text_of(child).strip() if child is not None else ""
        if not text:
            if needed and not element.get("responseModel") and not ref.startswith(TOOL_PREFIX):
                self.warning(
                    element, f"`{ref}` has no returnStruc; {listed(needed)} is asked for, as its step needs"
                )
            return (
                ReplySchema.of(ref, {key: WORDS[need.kind] for key, need in needed.items()})
                if needed
                else None
            )
        struct = self.json_object(
            cast("etree._Element", child), text, "error" if ref in REFS and needed else "warning"
        )
        if struct is None:
            return None
        missing = [key for key, one in needed.items() if key not in struct and not one.optional]
        if missing and ref in REFS:
            what = f"the returnStruc of `{ref}` lacks {listed(missing)}, which its step needs"
            self.error(cast("etree._Element", child), what)
        return ReplySchema.of(ref, struct)

    def json_object(self, child: etree._Element, text: str, severity: Severity) -> dict[str, Any] | None:
        try:
            struct = json.loads(text, parse_constant=refuse_constant)
        except json.JSONDecodeError as exc:
            what = f'no JSON, {exc.msg}: all is in double quotes, as in {{"key": "True or False"}}'
            self.add(self.inside(child, text, exc.pos), severity, f"{NO_STRUCTURE}: {what}")
            return None
        except (ValueError, RecursionError) as exc:
            self.add(self.spans[child].start, severity, f"{NO_STRUCTURE}: {exc}")
            return None
        if not isinstance(struct, dict) or not struct:
            self.add(
                self.spans[child].start, severity, f"{NO_STRUCTURE}: it has to be a JSON object with keys"
            )
            return None
        if deeper_than(struct, MAX_STRUCTURE_DEPTH):
            what = f"it is nested deeper than {MAX_STRUCTURE_DEPTH}: ask for less at once"
            self.add(self.spans[child].start, severity, f"{NO_STRUCTURE}: {what}")
            return None
        return struct

    def inside(self, element: etree._Element, text: str, offset: int) -> int:
        """The place in the source of a place in an element's text, exact where the text stands there as it
        is."""
        span = self.spans[element]
        start = self.source.text.find(text[: offset or 1], span.inside, span.end)
        return start + offset if start >= 0 else span.inside

    def read_examples(
        self, element: etree._Element, reply: ReplySchema | None, site: str | None
    ) -> Iterator[Example]:
        for child in element:
            if local(child) == "example":
                yield self.read_example(child, reply, site)

    def read_example(self, element: etree._Element, reply: ReplySchema | None, site: str | None) -> Example:
        values: dict[str, Value] = {}
        for name, given in attributes(element).items():
            found = values_of(name, json_or_text(given))
            if not found:
                known = [*ATTRIBUTES, *VARIABLES]
                self.error(
                    element, f"unknown attribute `{name}` of `<example>`{did_you_mean(str(name), known)}"
                )
            values |= found
        expect: dict[str, Any] | None = None
        for child in element:
            if local(child) == "value":
                name = child.get("name", "")
                value = json_or_text(text_of(child).strip())
                found = values_of(name, value)
                if not found:
                    self.error(child, f"unknown variable `{name}` of `<value>`{guess_variable(name)}")
                    self.unknown.append(UnknownUse(name, site, self.problems[-1]))
                values |= found or {name: value}
            elif local(child) == "expect":
                expect = self.read_expect(child, reply)
            else:
                self.error(child, f"`<{local(child)}>` inside `<example>`: only `<value>` and `<expect>`")
        return Example(values, expect, self.place(element)[0])

    def read_expect(self, element: etree._Element, reply: ReplySchema | None) -> dict[str, Any] | None:
        text = text_of(element).strip()
        try:
            expect = json.loads(text, parse_constant=refuse_constant)
        except (ValueError, RecursionError) as exc:
            self.error(element, f"`<expect>` is no JSON: {exc}")
            return None
        if not isinstance(expect, dict):
            self.error(element, "`<expect>` has to be a JSON object")
            return None
        if reply is None and self.has_structure(element):
            return expect  # the structure is broken, and that is said where it stands
        keys = reply.keys if reply else FILLED_KEYS
        for key in expect:
            if key not in keys:
                has = "the returnStruc has not" if reply else "a prompt that asks nothing has not"
                self.error(element, f"`<expect>` names `{key}`, which {has}{did_you_mean(key, list(keys))}")
        return expect

    def has_structure(self, expect: etree._Element) -> bool:
        """Whether the prompt that this `<expect>` belongs to has a returnStruc with something in it."""
        prompt = next((one for one in expect.iterancestors() if local(one) in ("Prompt", "Step")), None)
        found = (one for one in (prompt if prompt is not None else ()) if local(one) == "returnStruc")
        return any(text_of(one).strip() for one in found)

    # ---- attributes

    def tier(self, element: etree._Element) -> Tier | None:
        given = element.get("tier")
        if given is None or given in ("high", "low"):
            return cast("Tier | None", given)
        self.error(element, f'tier="{given}": it is `high` or `low`')
        return None

    def number(self, element: etree._Element, name: str, low: float, high: float) -> float | None:
        given = element.get(name)
        if given is None:
            return None
        try:
            number = float(given)
        except ValueError:
            number = low - 1
        if not low <= number <= high:
            self.error(element, f'{name}="{given}": a number from {low:g} to {high:g}')
            return None
        return number

    def flag(self, element: etree._Element, name: str) -> bool:
        given = element.get(name, "true").strip().casefold()
        if given not in ("true", "false", "1", "0"):
            self.error(element, f'{name}="{given}": it is `true` or `false`')
        return given not in ("false", "0")

    def unknown_attributes(self, element: etree._Element, known: frozenset[str]) -> None:
        for name in attributes(element):
            if not name.startswith("{") and name not in known:
                near = did_you_mean(name, sorted(known))
                self.error(element, f"unknown attribute `{name}` of `<{local(element)}>`{near}")

    def only_child(self, element: etree._Element, name: str) -> etree._Element | None:
        found = [child for child in element if local(child) == name]
        if len(found) > 1:
            self.error(found[1], f"a second `<{name}>`: one is allowed")
        return found[0] if found else None

    # ---- problems

    def place(self, element: etree._Element) -> tuple[int, int]:
        return self.source.position(self.spans[element].start)

    def error(self, element: etree._Element, what: str) -> None:
        self.add(self.spans[element].start, "error", what)

    def warning(self, element: etree._Element, what: str) -> None:
        self.add(self.spans[element].start, "warning", what)

    def add(self, at: int, severity: Severity, what: str) -> None:
        self.problems.append(Problem(self.file, *self.source.position(at), severity, what))


WORDS: Mapping[str, Any] = {
    "boolean": "True or False",
    "score": "integer between 0 and 100",
    "text": "string",
    "list": ["string"],
    "any": "string",
}


NO_STRUCTURE = "the returnStruc cannot be used"
MAX_STRUCTURE_DEPTH = 12


def deeper_than(value: Any, limit: int) -> bool:
    """Whether objects and lists are nested deeper; without recursion."""
    level = [value]
    for _ in range(limit):
        inner: list[Any] = []
        for one in level:
            inner += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        if not inner:
            return False
        level = inner
    return any(isinstance(one, dict | list) for one in level)


# What an example of a prompt that asks nothing may expect: its filled text.
FILLED_KEYS = ("text",)


def listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def local(element: etree._Element) -> str:
    return etree.QName(element).localname


def attributes(element: etree._Element) -> dict[str, str]:
    return {str(name): str(value) for name, value in element.attrib.items()}


def outdented(text: str) -> str:
    """Without the indentation that all lines after the first share: it is the file's and costs tokens."""
    first, newline, rest = text.partition("\n")
    return first + newline + textwrap.dedent(rest)


def text_of(element: etree._Element) -> str:
    return "".join(str(piece) for piece in element.itertext())


def whole(number: float | None) -> int | None:
    return None if number is None else int(number)


def guess_variable(name: str) -> str:
    """By the whole name, else by what stands after the dot (`query.raw` is none, `request.qurey` is)."""
    last = name.rpartition(".")[2].casefold()
    for known in VARIABLES:
        if known.rpartition(".")[2].casefold() == last:
            return f" (did you mean `{known}`?)"
    return did_you_mean(name, VARIABLES) or " (docs/prompts.md lists them; a step of yours may set others)"


def json_or_text(text: str) -> Value:
    """JSON where it is a list or an object, else the text as it is."""
    if text[:1] in ("[", "{"):
        try:
            return cast(Value, json.loads(text))
        except (ValueError, RecursionError):
            return text
    return text


def refuse_constant(name: str) -> None:
    raise ValueError(f"`{name}` is no JSON")


def names_in(text: str) -> tuple[str, ...]:
    """Names parted by white space or commas."""
    return tuple(one for one in re.split(r"[\s,]+", text) if one)
