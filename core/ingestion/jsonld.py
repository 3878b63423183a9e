"""From JSON-LD nodes to items: which of them are things of their own, and what belongs into which."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import unquote, urljoin

import orjson

from core.ingestion import urls
from core.ingestion.items import NotLoaded, Read, SourceItem
from core.ingestion.text import name_from_text, name_of, names, searchable_text, type_names

_MAX_DEPTH = 40  # of nesting that is kept
_MAX_INLINED = 2_000  # values that references may bring into one item
_INLINE_DEPTH = 5

Node = dict[str, Any]
Kind = Literal["main", "article", "questions", "page", "owner", "feedback", "furniture", "untyped"]


def _kinds() -> dict[str, Kind]:
    """Schema.org's types in lower case by the part they play on a page; all others are main things."""
    listed: dict[Kind, str] = {
        "furniture": """breadcrumblist website searchaction readaction commentaction entrypoint
            sitenavigationelement webpageelement wpheader wpfooter wpsidebar wpadblock imageobject listitem
            itemlist offercatalog speakablespecification postaladdress geocoordinates contactpoint
            aggregaterating rating nutritioninformation openinghoursspecification propertyvalue
            quantitativevalue monetaryamount interactioncounter howtostep howtosection role
            organizationrole language table datadownload videoobject audioobject mediaobject clip
            cssselectortype xpathtype""",
        "page": """webpage itempage collectionpage aboutpage contactpage checkoutpage searchresultspage
            profilepage medicalwebpage imagegallery videogallery mediagallery""",
        "questions": "faqpage qapage",
        "article": """article newsarticle blogposting reportagenewsarticle analysisnewsarticle
            askpublicnewsarticle backgroundnewsarticle opinionnewsarticle reviewnewsarticle techarticle
            scholarlyarticle medicalscholarlyarticle satiricalarticle advertisercontentarticle
            socialmediaposting discussionforumposting liveblogposting report blog creativework
            creativeworkseries thing""",
        "owner": "organization newsmediaorganization corporation onlinebusiness onlinestore person brand",
        "feedback": "review userreview criticreview employerreview comment usercomments answer claimreview",
    }
    return {name: kind for kind, text in listed.items() for name in text.split()}


_KINDS = _kinds()
# A reference by one of these points at a neighbour or upwards: it makes its target no part of the referrer,
_PEERS = names(
    """about mainentity haspart itemlistelement isrelatedto issimilarto subevent superevent mentions
    hasvariant isvariantof workexample exampleofwork subjectof ispartof mainentityofpage itemreviewed
    itemoffered relatedlink containsplace event events knows isbasedon recipe track episode hascourseinstance
    suborganization department member memberof item parentitem"""
)
# and these would pull the page around an item into it.
_NOT_INLINED = names(
    """ispartof mainentityofpage breadcrumb primaryimageofpage image logo thumbnail potentialaction haspart
    subjectof publisher isrelatedto issimilarto video"""
)
_WRAPPERS = (
    re.compile(r"\A\s*(?:<!--|(?://|/\*)?\s*<!\[CDATA\[\s*(?:\*/)?)"),
    re.compile(r"(?:-->|(?://|/\*)?\s*\]\]>\s*(?:\*/)?)\s*;?\s*\Z"),
)
_SCHEMA_KEY = re.compile(r"\A(?:https?://(?:www\.)?schema\.org/|schema:)(?=\w)", re.I)
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_NOT_WORD = re.compile(r"[\W_]+")


# ---------------------------------------------------------------- parsing


class BadJson(ValueError):
    """Text that is no JSON; `line` and `column` count from 1, 0 where there is no place."""

    def __init__(self, reason: str, line: int = 0, column: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line
        self.column = column


def parse(text: str) -> Any:
    """The value of a JSON text, made sane (see `sane`). Raises BadJson.

    Line ends and tabs inside strings are forgiven, and the comment or CDATA wrappers pages put around a
    block; nothing else is: a guess at broken data would be stored as fact."""
    try:
        return sane(orjson.loads(text))
    except (orjson.JSONDecodeError, RecursionError, UnicodeEncodeError):
        pass
    for wrapper in _WRAPPERS:
        # Blanks of the same length keep the line and column of an error right.
        text = wrapper.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    try:
        return sane(json.loads(text.lstrip("\ufeff"), strict=False))
    except json.JSONDecodeError as exc:
        raise BadJson(exc.msg, exc.lineno, exc.colno) from exc
    except RecursionError as exc:
        raise BadJson("nested too deep") from exc
    except ValueError as exc:  # a number with thousands of digits
        raise BadJson(str(exc)) from exc


def sane(value: Any) -> Any:
    """`value` as every store and wire can take it: no NaN, no half characters, no NUL, integers of 64 bits,
    at most `_MAX_DEPTH` deep. `schema:` in front of keys is taken off."""
    return _sane(value, 0)


def _sane(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value).replace("\x00", "")
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**63 else float(value) if abs(value) < 10**300 else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth >= _MAX_DEPTH:
        return None
    if isinstance(value, list | tuple):
        return [_sane(one, depth + 1) for one in value]
    if isinstance(value, Mapping):
        return {_SCHEMA_KEY.sub("", _sane(str(key), 0)): _sane(one, depth + 1) for key, one in value.items()}
    return None


def unfold(value: Any) -> Iterator[Node]:
    """The top-level nodes of a JSON-LD value in order: arrays and `@graph` are opened, a page's
    `mainEntity` and the things in a list stand as nodes of their own after it."""
    yield from _unfold(value, 0)


def _unfold(value: Any, depth: int) -> Iterator[Node]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, list):
        for one in value:
            yield from _unfold(one, depth + 1)
    elif isinstance(value, dict):
        graph = value.get("@graph")
        if graph is None:
            yield value
            yield from _held(value, depth)
            return
        if value.get("@type"):
            yield {key: one for key, one in value.items() if key != "@graph"}
        yield from _unfold(graph, depth + 1)


def _held(node: Node, depth: int) -> Iterator[Node]:
    """Things that a page or a list only carries: full nodes with a type and a name."""
    kind = kind_of(node)
    if kind == "page":
        entries = _listed(node.get("mainEntity"))
    elif kind == "furniture" and "itemlist" in _lower_types(node):
        entries = [_list_entry(entry) for entry in _listed(node.get("itemListElement"))]
    else:
        return
    for entry in entries:
        if isinstance(entry, dict) and type_names(entry) and name_of(entry) and kind_of(entry) != "furniture":
            yield from _unfold(entry, depth + 1)


def _list_entry(entry: Any) -> Any:
    return entry.get("item", entry) if isinstance(entry, dict) else None


def kind_of(node: Mapping[str, Any]) -> Kind:
    """The part a node plays; with several types the most telling one decides."""
    kinds = [_KINDS.get(name, "main") for name in _lower_types(node)]
    order: tuple[Kind, ...] = ("main", "questions", "article", "page", "owner", "feedback", "furniture")
    return next((kind for kind in order if kind in kinds), "untyped")


def _lower_types(node: Mapping[str, Any]) -> list[str]:
    return [name.lower() for name in type_names(node)]


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


# ---------------------------------------------------------------- where nodes were found


@dataclass(frozen=True, slots=True)
class Place:
    """Where nodes were found, as far as it decides what becomes of them."""

    source: str  # for reports
    url: str = ""  # of the page they describe
    fallback: str = ""  # the stable address of what has none
    is_page: bool = False  # they describe one page: its furniture and owner are no results
    is_html: bool = False  # ... which itself can be the result instead
    language: str = ""
    # Where other objects have the same fallback: how often each fragment of it was handed out.
    shared: dict[tuple[str, str], int] | None = None

    @property
    def base(self) -> str:
        return self.url or self.fallback


@dataclass(slots=True)
class _Entry:
    """One top-level node on its way to an item or a reason."""

    node: Node
    kind: Kind
    name: str
    text: str
    own_url: str  # the address it gives itself, "" if none
    reason: str = ""  # why it is no item, "" while it is one
    part_of: int = -1  # the entry it is a part of
    extra: dict[str, list[Any]] = field(default_factory=dict)  # folded in from others


def items_from_object(url: str, obj: Any, source: str) -> Iterator[Read]:
    """The items of one object that came with (or without) an address: a JSONL line, a posted item.

    `url` names the page the object describes, "" if it is not known; then the object's own `url`, `@id` or
    `identifier` does, else its name ("item:#walnut-sauce"). `source` is for reports. Arrays and `@graph` are
    unfolded. An `url` that is no address to link gives a NotLoaded."""
    address = urls.safe(url)
    if url and not address:
        yield NotLoaded(source, url[:200], "not a web address", "failed")
        return
    place = Place(source, url=address, fallback="item:", is_page=bool(address), shared={})
    yield from items_from_data(sane(obj), place)


def items_from_data(obj: Any, place: Place) -> Iterator[Read]:
    """The items of a sane JSON value that is not part of an HTML page."""
    nodes = list(unfold(obj))
    if not nodes:
        yield NotLoaded(place.source, "", "holds no object", "failed")
        return
    is_page = place.is_page or (len(nodes) > 1 and any(kind_of(node) == "page" for node in nodes))
    yield from items_from_nodes(nodes, replace(place, is_page=is_page))


def items_from_nodes(nodes: Iterable[Node], place: Place) -> Iterator[Read]:
    """An item or a reason for each top-level node, in order. Never raises on what JSON can hold."""
    listed = list(nodes)
    ids = _Ids(listed, place.base)
    entries = [_entry(node, place) for node in listed]
    _find_parts(entries, ids)
    _choose(entries, place)
    _fold(entries)
    _drop_repeated(entries)
    yield from _results(entries, ids, place)


def _entry(node: Node, place: Place) -> _Entry:
    return _Entry(
        node=node,
        kind=kind_of(node),
        name=name_of(node),
        text=searchable_text(node),
        own_url=_own_url(node, place),
    )


def _own_url(node: Mapping[str, Any], place: Place) -> str:
    """The address a node gives itself: `url`, else the page it is the main entity of, else its `@id` or
    `identifier` as far as these are addresses."""
    for value in _listed(node.get("url")):
        if isinstance(value, Mapping):
            value = value.get("@id") or value.get("@value")
        found = urls.safe(value, place.url)
        if found and not found.startswith("#"):
            return found
    for key in ("mainEntityOfPage", "@id", "identifier"):
        for value in _listed(node.get(key)):
            if isinstance(value, Mapping):
                value = value.get("@id") or value.get("url")
            if found := _page_address(value, place):
                return found
    return ""


def _page_address(value: Any, place: Place) -> str:
    """The page that an id points into; "" for `#fragments`, `_:blanks` and bare words."""
    if not isinstance(value, str) or value.lstrip().startswith("#"):
        return ""
    found = urls.without_fragment(urls.safe(value, place.url))
    is_address = bool(urls.scheme_of(found)) or (found.startswith("/") and len(found) > 1)
    # A bare word resolves against any page, yet names nothing there.
    is_word = not urls.scheme_of(value.strip()) and not value.lstrip().startswith("/")
    return found if is_address and not is_word else ""


# ---------------------------------------------------------------- references


class _Ids:
    """The nodes that an `@id` can mean, over all blocks of a page."""

    def __init__(self, nodes: list[Node], base: str) -> None:
        self._base = base
        self._nodes: dict[str, Node] = {}
        self.positions: dict[str, int] = {}
        for position, node in enumerate(nodes):
            if identity := self.of(node):
                self.positions.setdefault(identity, position)
            self._collect(node, 0)

    def of(self, value: Any) -> str:
        """The `@id` of an object, made absolute; "" if it has none."""
        identity = value.get("@id") if isinstance(value, Mapping) else None
        return self._absolute(identity) if isinstance(identity, str) else ""

    def named(self, value: Any) -> str:
        """The `@id` that a value refers to: of an object, or a bare `#fragment` or `_:blank` string."""
        if isinstance(value, str):
            return self._absolute(value) if value.startswith(("#", "_:")) else ""
        return self.of(value)

    @property
    def any(self) -> bool:
        """Whether there is anything to refer to."""
        return bool(self._nodes)

    def get(self, identity: str) -> Node | None:
        return self._nodes.get(identity)

    def _absolute(self, identity: str) -> str:
        text = identity.strip()
        if text.startswith("_:") or not urls.is_web(self._base):
            return text
        try:
            return urljoin(self._base, text)
        except ValueError:
            return text

    def _collect(self, value: Any, depth: int) -> None:
        if depth > _MAX_DEPTH:
            return
        if isinstance(value, list):
            for one in value:
                self._collect(one, depth + 1)
        elif isinstance(value, dict):
            identity = self.of(value)
            known = self._nodes.get(identity)
            if identity and len(value) > 1 and (known is None or len(known) < len(value)):
                self._nodes[identity] = value
            for one in value.values():
                self._collect(one, depth + 1)


def _find_parts(entries: list[_Entry], ids: _Ids) -> None:
    """Mark the entries that another one refers to as a part of itself (its author, its place, ...)."""
    for position, entry in enumerate(entries):
        for key, identity in _references(entry.node, ids, 0):
            target = ids.positions.get(identity, position)
            if target == position or key.lower() in _PEERS:
                continue
            owned = entries[target]
            is_weak = entry.kind in {"furniture", "page"} and owned.kind in {"main", "article", "questions"}
            if owned.part_of < 0 and not is_weak and not _leads_to(entries, position, target):
                owned.part_of = position


def _references(value: Any, ids: _Ids, depth: int, key: str = "") -> Iterator[tuple[str, str]]:
    if depth > _MAX_DEPTH:
        return
    if depth and (identity := ids.named(value)):
        yield key, identity
    if isinstance(value, list):
        for one in value:
            yield from _references(one, ids, depth + 1, key)
    elif isinstance(value, dict):
        for inner_key, one in value.items():
            if inner_key != "@id":
                yield from _references(one, ids, depth + 1, inner_key)


def _leads_to(entries: list[_Entry], start: int, target: int) -> bool:
    """Whether `start` is, through others, already a part of `target`: two nodes never swallow each other."""
    at = start
    for _ in range(_MAX_DEPTH):
        if at == target:
            return True
        at = entries[at].part_of
        if at < 0:
            return False
    return True  # a chain that long is no part of anything


def _inlined(node: Node, ids: _Ids) -> Node:
    """A copy of `node` with the nodes it refers to filled in, a few levels deep; cycles stay."""
    return _Inliner(ids).copied(node, (ids.of(node),), 0)


class _Inliner:
    """Fills in the references of one item, within a budget: a graph can be made to grow without end."""

    def __init__(self, ids: _Ids) -> None:
        self._ids = ids
        self._left = _MAX_INLINED

    def copied(self, node: Node, path: tuple[str, ...], depth: int) -> Node:
        """A copy of `node`; `path` are the ids it stands in, its own as the last."""
        return {key: one if _stays(key) else self._value(one, path, depth + 1) for key, one in node.items()}

    def _value(self, value: Any, path: tuple[str, ...], depth: int) -> Any:
        if depth > _MAX_DEPTH:
            return None
        if isinstance(value, list):
            return [self._value(one, path, depth + 1) for one in value]
        identity = self._ids.named(value)
        target = self._ids.get(identity) if identity else None
        if target is not None and target is not value and self._may_fill(identity, target, path):
            own = value if isinstance(value, dict) else {}
            return self.copied({**target, **own}, (*path, identity), depth)
        if isinstance(value, dict):
            return self.copied(value, (*path, identity) if identity else path, depth)
        return value

    def _may_fill(self, identity: str, target: Node, path: tuple[str, ...]) -> bool:
        if identity in path or len(path) > _INLINE_DEPTH:
            return False
        self._left -= _weight(target, 0)
        return self._left >= 0


def _stays(key: str) -> bool:
    return key.startswith("@") or key.lower() in _NOT_INLINED


def _weight(value: Any, depth: int) -> int:
    """How many values there are in `value`, as far as it matters for the budget."""
    if depth > _INLINE_DEPTH:
        return 1
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    total = 1
    for one in inner:
        total += _weight(one, depth + 1)
        if total > _MAX_INLINED:
            break
    return total


# ---------------------------------------------------------------- choosing


def _choose(entries: list[_Entry], place: Place) -> None:
    """Give every entry that is no result of its own its reason."""
    for entry in entries:
        if entry.part_of >= 0:
            owner = entries[entry.part_of]
            entry.reason = f"part of {owner.name or _label(owner)}"
        elif entry.kind == "untyped" and place.is_html:
            entry.reason = "has no @type"
        elif not entry.name and (place.is_html or not (entry.own_url or place.url)):
            if entry.kind == "untyped":
                entry.reason = "has no type, name or address"
            elif not entry.text:
                entry.reason = "has neither a name nor text"
    mains = _mains([entry for entry in entries if not entry.reason], place)
    chosen = {id(main) for main in mains}
    for entry in entries:
        if not entry.reason and id(entry) not in chosen:
            entry.reason = _reason(entry, mains[0] if mains else None)


def _mains(entries: list[_Entry], place: Place) -> list[_Entry]:
    """The entries that are results, the one a page is about first."""

    def of(*kinds: Kind) -> list[_Entry]:
        return [entry for entry in entries if entry.kind in kinds]

    mains = of("main", "untyped") or of("questions")[:1]
    chosen = [*mains, *_articles(of("article"), mains, place)]
    if not place.is_page:
        chosen += of("page", "owner")
    elif not chosen:
        about = [entry for entry in of("page", "owner") if _is_about(entry, place)]
        chosen = [entry for entry in about if entry.kind == "page"][:1] or about
    reviews = of("feedback")
    if chosen:
        return [*chosen, *_own_reviews(reviews, chosen)]
    if place.is_html:  # else the page itself is the result
        return [entry for entry in reviews if entry.name]
    return reviews or entries


def _articles(articles: list[_Entry], mains: list[_Entry], place: Place) -> list[_Entry]:
    """The articles that are not about the same page as a main thing or an article before them: two results
    for one page are noise."""
    taken = {main.name.casefold() for main in mains}
    pages = {urls.page_key(main.own_url or place.url) for main in mains}
    chosen: list[_Entry] = []
    for article in articles:
        page = urls.page_key(article.own_url or place.url)
        if place.is_page:
            is_same = page in pages or article.name.casefold() in taken or ("" in pages and bool(mains))
        else:
            is_same = article.name.casefold() in taken if not article.own_url else page in pages
        if not is_same:
            chosen.append(article)
            if place.is_page or article.own_url:
                pages.add(page)
    return chosen


def _own_reviews(reviews: list[_Entry], chosen: list[_Entry]) -> list[_Entry]:
    """The reviews that stand for themselves: with an address of their own, or of something not here."""
    pages = {urls.page_key(one.own_url) for one in chosen if one.own_url}
    present = {one.name for one in chosen}
    own: list[_Entry] = []
    for review in reviews:
        if not review.name or "review" not in " ".join(_lower_types(review.node)):
            continue
        things = [
            name_of(one) for one in _listed(review.node.get("itemReviewed")) if isinstance(one, Mapping)
        ]
        is_elsewhere = bool(review.own_url) and urls.page_key(review.own_url) not in pages
        if is_elsewhere or (any(things) and present.isdisjoint(things)):
            own.append(review)
    return own


def _is_about(entry: _Entry, place: Place) -> bool:
    """Whether a page's node or its owner's is what the page is about."""
    if not place.is_html:
        return True
    if entry.kind == "page":
        return not entry.own_url or not place.url or urls.same_page(entry.own_url, place.url)
    return urls.same_page(entry.own_url, place.url) if place.url else True


def _is_own_review(entry: _Entry, mains: list[_Entry]) -> bool:
    """A review that stands for itself: with an address of its own, or of something that is not here."""
    if entry.kind != "feedback" or "review" not in "".join(_lower_types(entry.node)) or not entry.name:
        return False
    if entry.own_url and not any(urls.same_page(entry.own_url, main.own_url) for main in mains):
        return True
    reviewed = [name_of(one) for one in _listed(entry.node.get("itemReviewed")) if isinstance(one, Mapping)]
    return any(reviewed) and not any(main.name in reviewed for main in mains)


def _reason(entry: _Entry, main: _Entry | None) -> str:
    kind = next(iter(type_names(entry.node)), "no type")
    if entry.kind == "furniture":
        return f"page furniture ({kind})"
    if main is None:
        return "about the site, not this page"
    about = main.name or _label(main)
    if entry.kind in {"article", "page", "questions"}:
        return f"about the same page as {about}"
    return f"part of {about}" if entry.kind == "feedback" else f"stands beside {about} ({kind})"


def _fold(entries: list[_Entry]) -> None:
    """Questions and reviews that stand beside the one main thing of a page become a part of it, so that
    they are found with it."""
    mains = [entry for entry in entries if not entry.reason and entry.kind == "main"]
    if len(mains) != 1:
        return
    for entry in entries:
        if entry.part_of < 0 and entry.reason and entry.text:
            if entry.kind == "questions":
                mains[0].extra.setdefault("subjectOf", []).append(entry.node)
            elif entry.kind == "feedback" and "review" in _lower_types(entry.node):
                mains[0].extra.setdefault("review", []).append(entry.node)


def _drop_repeated(entries: list[_Entry]) -> None:
    """One of several entries that say they are the same: by name and address, or word for word."""
    seen: set[tuple[str, str, str]] = set()
    for entry in entries:
        if entry.reason:
            continue
        address = urls.canonical(entry.own_url) if entry.own_url else ""
        key = (entry.name.casefold(), address, "" if address else entry.text)
        if key in seen and (entry.name or address):
            entry.reason = f"the same as {entry.name or address} before it"
        seen.add(key)


# ---------------------------------------------------------------- results


def _results(entries: list[_Entry], ids: _Ids, place: Place) -> Iterator[Read]:
    addresses = _Addresses([entry for entry in entries if not entry.reason], place)
    for entry in entries:
        if entry.reason:
            yield NotLoaded(place.source, _label(entry), entry.reason, "skipped")
        else:
            yield _item(entry, addresses.take(entry), ids, place)


def _item(entry: _Entry, url: str, ids: _Ids, place: Place) -> SourceItem:
    node, text = entry.node, entry.text
    if ids.any or entry.extra:
        node = _inlined(node, ids)
        node.update({key: [*_listed(node.get(key)), *values] for key, values in entry.extra.items()})
        text = searchable_text(node)
    return SourceItem(
        url=url,
        name=entry.name or (name_from_text(node, text) if text else name_from_url(url)),
        types=type_names(node),
        schema_object=node,
        text=text,
        language=language_of(node) or place.language,
        source=place.source,
    )


class _Addresses:
    """Hands out an address to each item: its own, the page's to the first without one, else the page's with
    a fragment that stays the same from load to load."""

    def __init__(self, entries: list[_Entry], place: Place) -> None:
        self._place = place
        self._taken: set[str] = set()
        self._numbers: dict[tuple[str, str], int] = {} if place.shared is None else place.shared
        self._is_alone = len(entries) == 1

    def take(self, entry: _Entry) -> str:
        place = self._place
        own = entry.own_url
        if place.url and ((self._is_alone and not place.is_html) or urls.same_page(own, place.url)):
            # Whoever gave the address knows it; and of two spellings of a page's the canonical one is taken.
            own = place.url
        if own and self._is_free(own):
            return own
        base = own or place.base
        # Of several things in a file none gets the file's name: in another order it would change hands.
        may_have_it = place.is_page or (self._is_alone and place.shared is None)
        if not own and may_have_it and self._is_free(base):
            return base
        return self._with_fragment(urls.without_fragment(base), entry)

    def _with_fragment(self, base: str, entry: _Entry) -> str:
        slug = _fragment(entry.node) or _slug(entry.name or _label(entry))
        while True:
            number = self._numbers[base, slug] = self._numbers.get((base, slug), 0) + 1
            address = f"{base}#{slug}" if number == 1 else f"{base}#{slug}-{number}"
            if self._is_free(address):
                return address

    def _is_free(self, address: str) -> bool:
        key = urls.canonical(address)
        if key in self._taken:
            return False
        self._taken.add(key)
        return True


def _fragment(node: Mapping[str, Any]) -> str:
    """What tells a node apart by its own `@id` or `identifier`: the fragment, or a word of its own."""
    for key in ("@id", "identifier"):
        value = node.get(key)
        if isinstance(value, str) and not value.startswith("_:"):
            own = value.partition("#")[2] if "#" in value else "" if urls.scheme_of(value) else value
            if own.strip():
                return _slug(own)
    return ""


def _slug(name: str) -> str:
    words = _NOT_WORD.sub("-", unicodedata.normalize("NFKC", name).casefold()).strip("-")
    return words[:60].rstrip("-") or "item"


def _label(entry: _Entry) -> str:
    """What a report calls a node: its type and, if it has one, its name."""
    kind = ", ".join(type_names(entry.node)) or "untyped node"
    return f"{kind}: {entry.name}" if entry.name else kind


def name_from_url(url: str) -> str:
    """The last telling part of an address as words: "/recipes/carrot-cake.html" is "carrot cake"."""
    page, _, fragment = url.partition("#")
    path = page.split("?", 1)[0]
    parts = [part for part in path.split("/")[3 if urls.is_web(url) else 0 :] if part]
    last = fragment or (parts[-1] if parts else "")
    words = _NOT_WORD.sub(" ", re.sub(r"\.\w{1,5}$", "", unquote(last, errors="replace"))).strip()
    return words or url


def language_of(node: Mapping[str, Any]) -> str:
    """The primary subtag of a node's `inLanguage` ("pt-BR" is "pt"), or ""."""
    for value in _listed(node.get("inLanguage")):
        if isinstance(value, Mapping):
            value = value.get("alternateName") or value.get("name")
        if isinstance(value, str) and (tag := primary_subtag(value)):
            return tag
    return ""


def primary_subtag(tag: str) -> str:
    """ "pt-BR" or "pt_BR" is "pt"; "" for what is no language tag."""
    match = re.match(r"([a-zA-Z]{2,3})(?:[-_]|$)", tag.strip())
    return match[1].lower() if match else ""
