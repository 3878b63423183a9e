"""HTML pages: microdata, the page itself, main text, and what is broken."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.ingestion.items import Read, SourceItem
from tests.core.ingestion.support import items, page, read_bytes, rest

HEAD = (
    "<title>Opening hours | My Shop</title><link rel='canonical' href='https://e.com/hours'>"
    "<meta name='description' content='When we are open.'>"
)
BODY = """
<header><a href="/">Home</a> Welcome banner</header><nav><ul><li><a href=/a>About</a></ul></nav>
<main><h1>Opening hours</h1><p>We open at nine &amp; close at five.</p>
<ul><li><p>Monday</p></li><li>Tuesday</li></ul>
<form>Subscribe now</form><script>var secret = 1;</script><div hidden>hidden words</div>
<div class="related"><a href=/1>Other page</a></div></main>
<footer>Imprint</footer>
"""


def only(reads: list[Read]) -> SourceItem:
    (item,) = items(reads)
    return item


def test_page_without_markup_is_an_item_with_its_main_text() -> None:
    item = only(read_bytes("hours.html", page(head=HEAD, body=BODY)))
    assert (item.types, item.name, item.url, item.language) == (
        ("WebPage",),
        "Opening hours",
        "https://e.com/hours",
        "en",
    )
    assert "We open at nine & close at five." in item.text
    assert "Monday\nTuesday" in item.text
    assert "When we are open." in item.text
    for noise in ("Home", "banner", "About", "Subscribe", "secret", "hidden words", "Other page", "Imprint"):
        assert noise not in item.text
    assert item.schema_object["description"] == "When we are open."


def test_page_without_an_address_is_called_by_its_file() -> None:
    item = only(read_bytes("my page.html", page(body="<h1>Hours</h1><p>Nine to five.</p>")))
    assert item.url == "file:my%20page.html"
    assert item.name == "Hours"


def test_page_with_only_furniture_or_a_site_owner_is_itself_the_item() -> None:
    crumbs = {"@type": "BreadcrumbList", "itemListElement": []}
    owner = {"@type": "Organization", "name": "My Shop", "url": "https://e.com/"}
    reads = read_bytes("h.html", page(json.dumps([crumbs, owner]), head=HEAD, body=BODY))
    assert only(reads).types == ("WebPage",)
    assert [read.outcome for read in rest(reads)] == ["skipped", "skipped"]


def test_article_with_a_headline_alone_gets_the_text_of_its_page() -> None:
    article = {"@type": "NewsArticle", "headline": "New hours", "url": "https://e.com/hours"}
    item = only(read_bytes("h.html", page(json.dumps(article), head=HEAD, body=BODY)))
    assert item.name == "New hours"
    assert "close at five" in item.text


def test_own_page_node_is_the_page_with_its_text() -> None:
    node = {"@type": "AboutPage", "name": "Opening hours | My Shop", "url": "https://e.com/hours"}
    item = only(read_bytes("h.html", page(json.dumps(node), head=HEAD, body=BODY)))
    assert (item.types, item.name) == (("AboutPage",), "Opening hours")
    assert "close at five" in item.text


def test_broken_block_leaves_the_other_blocks_and_the_page() -> None:
    good = json.dumps({"@type": "Recipe", "name": "Soup", "description": "Warm."})
    reads = read_bytes("s.html", page('{"@type": "Recipe", oops}', good))
    assert only(reads).name == "Soup"
    (problem,) = rest(reads)
    assert (problem.what, problem.outcome) == ("JSON-LD block 1", "skipped")
    assert problem.source.startswith("s.html:1:")


# ---------------------------------------------------------------- microdata

MICRODATA = """
<div itemscope itemtype="https://schema.org/Recipe" itemref="more missing self" id="self">
  <h1 itemprop="name">Farinata</h1><img itemprop="image" src="/a.jpg"><a itemprop="url" href="/farinata">x</a>
  <meta itemprop="recipeYield" content="4"><time itemprop="totalTime" datetime="PT40M">soon</time>
  <ul><li itemprop="recipeIngredient">chickpea flour</li><li itemprop="recipeIngredient">water</li></ul>
  <div itemprop="author" itemscope itemtype="https://schema.org/Person"><b itemprop="name">Ada</b></div>
  <data itemprop="sku" value="17">seventeen</data>
</div>
<p id="more"><span itemprop="description">Thin and crisp.</span></p>
"""


def test_microdata_is_read_where_there_is_no_json() -> None:
    head = "<link rel=canonical href='https://e.com/farinata'>"
    item = only(read_bytes("f.html", page(head=head, body=MICRODATA)))
    assert (item.types, item.name, item.url) == (("Recipe",), "Farinata", "https://e.com/farinata")
    node = item.schema_object
    assert node["recipeIngredient"] == ["chickpea flour", "water"]
    assert node["author"] == {"@type": "https://schema.org/Person", "name": "Ada"}
    assert node["image"] == "https://e.com/a.jpg"
    assert (node["recipeYield"], node["totalTime"], node["sku"]) == ("4", "PT40M", "17")
    assert "Thin and crisp." in item.text
    assert "40 minutes" in item.text


def test_json_is_preferred_to_microdata() -> None:
    block = json.dumps({"@type": "Recipe", "name": "Panissa", "description": "Fried. " * 60})
    item = only(read_bytes("f.html", page(block, body=MICRODATA)))
    assert item.name == "Panissa"
    assert "Thin and crisp" not in item.text


def test_microdata_item_that_holds_itself_ends() -> None:
    body = '<div id=a itemscope itemtype="Recipe" itemref=b><b itemprop=name>Loop</b></div>'
    body += '<div id=b itemprop=isRelatedTo itemscope itemref="b c"></div>'
    body += "<p id=c itemprop=about itemscope itemref=b></p>"
    assert only(read_bytes("l.html", page(body=body))).name == "Loop"


# ---------------------------------------------------------------- charsets and junk


@pytest.mark.parametrize(
    ("encoding", "declared", "words"),
    [
        ("utf-8", "utf-8", "Crêpes à l’été"),
        ("utf-8", "iso-8859-1", "Crêpes à l’été"),
        ("utf-8-sig", "shift_jis", "Crêpes à l’été"),
        ("utf-16", "", "Crêpes à l’été"),
        ("cp1252", "iso-8859-1", "Crêpes à l’été"),
        ("cp1251", "windows-1251", "Курица с сыром"),
        ("koi8-r", "koi8-r", "Курица с сыром"),
        ("shift_jis", "Shift_JIS", "簡単な本格カレー"),
        ("euc-jp", "euc-jp", "簡単な本格カレー"),
        ("gb18030", "gb2312", "蓝莓慕斯巴斯克"),
        ("big5", "big5", "藍莓慕斯"),
        ("cp949", "euc-kr", "한국어 문장"),
        ("cp1251", "", "Курица с сыром пармезан запечённая в духовке с луком и сметаной"),
        ("cp1251", "no-such-charset", "Курица с сыром пармезан запечённая в духовке с луком и сметаной"),
    ],
)
def test_charset_is_found(encoding: str, declared: str, words: str) -> None:
    head = f"<meta charset='{declared}'>" if declared else ""
    html = page(head=f"{head}<title>{words}</title>", body=f"<p>{words}</p>" * 5)
    item = only(read_bytes("c.html", html.encode(encoding)))
    assert item.name == words
    assert "\ufffd" not in item.text


@pytest.mark.parametrize(
    "html",
    [
        "<html>",
        "<!doctype html>",
        "<p>unclosed <b>bold <i>both",
        "<div>" * 3000 + "deep",
        "<h1>" + "x" * 5000 + "</h1>",
        "<html><head><link rel=canonical href='http://['><base href='::'><title></title></head>Text",
        "<?xml version='1.0' encoding='utf-16'?><html><body>Text</body></html>",
        "<html\x00><body>a\x00b</body>",
        "<script type='application/ld+json'>",
        "<table><tr><td>a<td>b</table>",
    ],
)
def test_broken_page_never_crashes(html: str) -> None:
    reads = read_bytes("b.html", html)
    assert len(reads) == 1
    assert all(read.outcome == "skipped" for read in rest(reads))


@settings(max_examples=150, deadline=None)
@given(
    st.binary(max_size=300),
    st.sampled_from([b"<html>", b"<p itemscope itemtype=Recipe>", b"\xff\xfe<", b"\xef\xbb\xbf<p>"]),
)
def test_no_bytes_make_a_page_raise(data: bytes, start: bytes) -> None:
    assert read_bytes("junk.html", start + data)


def test_canonical_that_runs_as_script_is_not_taken() -> None:  # N05
    head = (
        "<link rel=canonical href='javascript:alert(1)'><meta property='og:url' content='data:text/html,x'>"
    )
    assert only(read_bytes("x.html", page(head=head, body="<p>Text</p>"))).url == "file:x.html"


def test_relative_canonical_counts_from_the_base() -> None:
    head = "<base href='https://e.com/docs/'><link rel=canonical href='hours'>"
    assert only(read_bytes("x.html", page(head=head, body="<p>Text</p>"))).url == "https://e.com/docs/hours"
