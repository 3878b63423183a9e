"""An HTML page as items: its JSON-LD, else its microdata, else the page itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from core.ingestion import jsonld, urls
from core.ingestion.decoding import decode
from core.ingestion.items import NotLoaded, Read, SourceItem
from core.ingestion.jsonld import Node, Place
from core.ingestion.markup import Element, parse, tag_of, visible_text
from core.ingestion.microdata import microdata
from core.ingestion.text import MAX_TEXT, one_line, plain, shortened

_ENOUGH = 300  # characters: with less of its own text, a page's one item also gets the page's
_DESCRIPTION = 500
_MAX_HEADINGS = 20  # that are looked at for a name
_FURNITURE = frozenset({"nav", "aside", "form", "dialog", "menu"})
_PAGE_ENDS = frozenset({"header", "footer"})  # furniture unless they belong to an article
_FURNITURE_ROLES = frozenset(
    {"navigation", "banner", "contentinfo", "search", "complementary", "dialog", "alert", "menu", "toolbar"}
)
_FURNITURE_NAME = re.compile(
    r"(?:^|[-_\s])(?:cookies?|consent|gdpr|breadcrumbs?|share|sharing|social|newsletter|sidebar|menu|navbar|nav|"
    r"navigation|related|recommended|comments?|advert(?:isement)?|ads?|banner|promo|popup|modal|skip-link|"
    r"sr-only|visually-hidden|pagination)(?:$|[-_\s])",
    re.I,
)
_SEPARATOR = re.compile(r"\s+[|–—·•»:-]\s+|\s*[|_]\s*")
_BLANKS = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class _Page:
    """What a page says about itself."""

    url: str
    base: str  # what relative addresses count from
    name: str
    description: str
    language: str


def read_page(data: bytes, source: str, fallback: str) -> Iterator[Read]:
    """The items of an HTML page in any charset, and a word on every other top-level node and broken block.

    `source` is for reports, `fallback` the address of a page that names none. A page always gives at least
    one item, if need be itself with its main text (unless it has neither name nor text). Never raises."""
    root = parse(decode(data))
    if root is None:
        yield NotLoaded(source, "", "holds no HTML", "skipped")
        return
    page = _page(root)
    place = Place(source, page.url or page.base, fallback, is_page=True, is_html=True, language=page.language)
    nodes, problems = _json_nodes(root, source)
    reads = list(jsonld.items_from_nodes(nodes, place))
    if not _has(reads, "main", "questions", "article"):
        found = list(jsonld.items_from_nodes(microdata(root, page.base or page.url), place))
        # An article in microdata holds less than the page's own text.
        if _has(found, "main", "questions"):
            reads = [*(_beside(read) for read in reads), *_as_the_page_says(found, page)]
    yield from problems
    yield from _with_page(reads, root, page, place)


def _has(reads: list[Read], *parts: jsonld.Kind) -> bool:
    """Whether one of the items plays one of these parts."""
    return any(isinstance(read, SourceItem) and _part(read) in parts for read in reads)


def _part(item: SourceItem) -> jsonld.Kind:
    return jsonld.kind_of({"@type": list(item.types)})


def _beside(read: Read) -> Read:
    if isinstance(read, NotLoaded):
        return read
    return NotLoaded(
        read.source, f"{', '.join(read.types)}: {read.name}", "about the site, not this page", "skipped"
    )


def _as_the_page_says(reads: list[Read], page: _Page) -> Iterator[Read]:
    """Microdata often names a thing by the page's whole title and an older address: where it is alone, the
    page's own name and canonical address are the better ones."""
    is_alone = sum(isinstance(read, SourceItem) for read in reads) == 1
    for read in reads:
        if is_alone and isinstance(read, SourceItem):
            name = page.name if page.name and read.name.startswith(page.name) else read.name
            yield replace(read, name=name, url=page.url or read.url)
        else:
            yield read


# ---------------------------------------------------------------- JSON-LD blocks


def _json_nodes(root: Element, source: str) -> tuple[list[Node], list[NotLoaded]]:
    """The top-level nodes of all blocks, and what is wrong with the others."""
    nodes: list[Node] = []
    problems: list[NotLoaded] = []
    number = 0
    for script in root.iter("script"):
        if "ld+json" not in (script.get("type") or "").lower():
            continue
        number += 1
        text = script.text or ""
        if not text.strip():
            continue
        try:
            nodes.extend(jsonld.unfold(jsonld.parse(text)))
        except jsonld.BadJson as exc:
            line = _line_of(script) + exc.line - 1
            where = f"{source}:{line}:{exc.column}" if exc.line else source
            reason = f"no valid JSON: {exc.reason}"
            problems.append(NotLoaded(where, f"JSON-LD block {number}", reason, "skipped"))
    return nodes, problems


def _line_of(element: Element) -> int:
    line = element.sourceline
    return line if isinstance(line, int) else 1


# ---------------------------------------------------------------- the page itself


def _with_page(reads: list[Read], root: Element, page: _Page, place: Place) -> Iterator[Read]:
    """The reads, with the page's text where its one item has little, and the page where there is no item."""
    items = [read for read in reads if isinstance(read, SourceItem)]
    if not items:
        yield from reads
        yield _page_itself(main_text(root), page, place)
        return
    for read in reads:
        yield _enriched(read, root, page) if len(items) == 1 and read is items[0] else read


def _enriched(read: Read, root: Element, page: _Page) -> Read:
    if not isinstance(read, SourceItem):
        return read
    part = _part(read)
    if part == "main" and len(read.text) >= _ENOUGH:
        return read
    text = _joined(read.text, main_text(root))
    name = page.name if part == "page" and page.name else read.name
    return replace(read, text=text, name=name)


def _joined(own: str, text: str) -> str:
    """Both texts, one alone if it holds the other."""
    if _squeezed(text) in _squeezed(own):
        return own
    if _squeezed(own) in _squeezed(text):
        return text
    return shortened(f"{own}\n\n{text}", MAX_TEXT)


def _page_itself(text: str, page: _Page, place: Place) -> Read:
    if not (page.name or text):
        return NotLoaded(place.source, page.url, "has neither a name nor text", "skipped")
    url = page.url or place.fallback
    name = page.name or shortened(text.partition("\n")[0], 80) or jsonld.name_from_url(url)
    described: dict[str, Any] = {
        "@context": "https://schema.org",
        "@type": "WebPage",
        "name": name,
        "url": url,
        "description": page.description or shortened(" ".join(text.split()), _DESCRIPTION),
        "inLanguage": page.language,
    }
    return SourceItem(
        url=url,
        name=name,
        types=("WebPage",),
        schema_object={key: value for key, value in described.items() if value},
        text=_joined(page.description, text) if page.description else text,
        language=page.language,
        source=place.source,
    )


def _page(root: Element) -> _Page:
    metas = _metas(root)
    base = _base(root, metas)
    url = _canonical(root, base) or urls.safe(metas.get("og:url", ""), base)
    language = root.get("lang") or root.get("{http://www.w3.org/XML/1998/namespace}lang") or ""
    language = language or metas.get("content-language", "") or metas.get("og:locale", "")
    description = metas.get("description") or metas.get("og:description") or ""
    return _Page(
        url=url if urls.is_web(url) else "",
        base=base or url,
        name=_page_name(root, metas),
        description=shortened(plain(description), _DESCRIPTION),
        language=jsonld.primary_subtag(language),
    )


def _metas(root: Element) -> dict[str, str]:
    """`name`/`property`/`http-equiv` of the page's meta elements in lower case; the first of each wins."""
    found: dict[str, str] = {}
    for meta in root.iter("meta"):
        key = meta.get("property") or meta.get("name") or meta.get("http-equiv") or ""
        content = (meta.get("content") or "").strip()
        if key and content:
            found.setdefault(key.strip().lower(), content)
    return found


def _base(root: Element, metas: dict[str, str]) -> str:
    given = next((element.get("href") or "" for element in root.iter("base") if element.get("href")), "")
    known = _canonical(root, "") or urls.safe(metas.get("og:url", ""))
    base = urls.safe(given, known)
    return base if urls.is_web(base) else known if urls.is_web(known) else ""


def _canonical(root: Element, base: str) -> str:
    for link in root.iter("link"):
        if "canonical" in (link.get("rel") or "").lower().split():
            found = urls.safe(link.get("href"), base)
            if urls.is_web(found):
                return found
    return ""


# ---------------------------------------------------------------- names


def _page_name(root: Element, metas: dict[str, str]) -> str:
    """The page's name: a heading that its titles contain, else the title without the site's name."""
    site = metas.get("og:site_name", "")
    host = urlsplit(urls.safe(metas.get("og:url", ""))).netloc
    titles = [one_line(metas[key]) for key in ("og:title", "twitter:title") if metas.get(key)]
    title = next((element for element in root.iter("title") if not _is_inside(element, "svg")), None)
    if title is not None and (text := one_line(title.text or "")):
        titles.append(text)
    headings = [
        one_line(visible_text(element).replace("\n", " "))
        for element in islice(root.iter("h1"), _MAX_HEADINGS)
    ]
    headings = [heading for heading in headings if heading]
    known = [_squeezed(one) for one in titles]
    for heading in headings:
        if any(_squeezed(heading) and _squeezed(heading) in one for one in known):
            return heading
    if titles:
        return _without_site(titles[0], site, host)
    return headings[0] if headings else ""


def _without_site(title: str, site: str, host: str) -> str:
    """ "Soup | My Site" is "Soup", where what follows the last separator is the site's name or stands behind
    a bar."""
    separators = list(_SEPARATOR.finditer(title))
    if not separators:
        return title
    last = separators[-1]
    rest, tail = title[: last.start()].strip(), _squeezed(title[last.end() :])
    is_site = bool(tail) and (tail == _squeezed(site) or tail in _squeezed(host))
    return rest if rest and (is_site or "|" in last[0]) else title


def _squeezed(text: str) -> str:
    return _BLANKS.sub("", text).casefold()


def _is_inside(element: Element, tag: str) -> bool:
    return any(tag_of(above) == tag for above in element.iterancestors())


# ---------------------------------------------------------------- main text


def main_text(root: Element) -> str:
    """What a page is about, in words: its `main` (or the one `article`, or the body) without navigation,
    headers and footers, forms, what is hidden, and lists of links."""
    body = root.find("body")
    start = _main_element(root if body is None else body)
    links = _link_lists(start)

    def leaves_out(element: Element) -> bool:
        return _is_furniture(element) or element in links

    text = visible_text(start, leaves_out)
    return shortened(text, MAX_TEXT)


def _main_element(body: Element) -> Element:
    whole = len(visible_text(body, _is_furniture))
    mains = [
        element for element in body.iter("*") if tag_of(element) == "main" or element.get("role") == "main"
    ]
    articles = list(body.iter("article"))
    for candidates in (mains, articles if len(articles) == 1 else []):
        for candidate in candidates[:3]:
            length = len(visible_text(candidate, _is_furniture))
            if length > 0 and length * 4 >= whole:
                return candidate
    return body


def _is_furniture(element: Element) -> bool:
    tag = tag_of(element)
    if tag in _FURNITURE or (element.get("role") or "").lower() in _FURNITURE_ROLES:
        return True
    if tag in _PAGE_ENDS:
        return not _is_inside(element, "article")
    if "hidden" in element.attrib or element.get("aria-hidden") == "true":
        return True
    if "display:none" in (element.get("style") or "").replace(" ", "").lower():
        return True
    if tag in {"article", "main", "body", "html"}:
        return False
    named = f"{element.get('class') or ''} {element.get('id') or ''}"
    return len(named) < 500 and bool(_FURNITURE_NAME.search(named))


def _link_lists(start: Element) -> set[Element]:
    """Lists and boxes that are mostly links: menus and teasers that do not say so."""
    texts: dict[Element, tuple[int, int, int]] = {}  # characters, of them in links, links
    elements = list(start.iter("*"))
    for element in reversed(elements):
        length = in_links = count = 0
        length += len((element.text or "").strip())
        for child in element:
            below = texts.get(child, (0, 0, 0))
            length += below[0] + len((child.tail or "").strip())
            in_links += below[1]
            count += below[2]
        if tag_of(element) == "a" and element.get("href"):
            in_links, count = length, 1
        texts[element] = (length, in_links, count)
    return {
        element
        for element, (length, in_links, count) in texts.items()
        if count >= 3
        and in_links > 0.7 * length
        and tag_of(element) in {"ul", "ol", "div", "section", "table", "dl"}
    }
