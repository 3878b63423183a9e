"""Which nodes become items, what goes into them, and where each gets its address."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.ingestion.items import SourceItem
from core.ingestion.jsonld import BadJson, items_from_object, parse
from core.ingestion.text import searchable_text, trimmed
from tests.core.ingestion.support import items, page, read_bytes, rest

CLINIC = {
    "@graph": [
        {
            "@id": "#o",
            "@type": "MedicalOrganization",
            "name": "Hillside Clinic",
            "location": {"@id": "#p"},
        },
        {"@id": "#p", "@type": "Place", "address": "4 Mill Rd"},
    ]
}


def load(obj: Any, url: str = "") -> list[SourceItem]:
    return items(list(items_from_object(url, obj, "test")))


# ---------------------------------------------------------------- parts of others


@pytest.mark.parametrize("url", ["", "https://hillside.example/"])
def test_place_of_an_organization_is_found_with_it_and_is_no_result(url: str) -> None:  # B02
    reads = list(items_from_object(url, CLINIC, "test"))
    (clinic,) = items(reads)
    assert clinic.name == "Hillside Clinic"
    assert "4 Mill Rd" in clinic.text
    (place,) = rest(reads)
    assert (place.what, place.reason, place.outcome) == ("Place", "part of Hillside Clinic", "skipped")


def test_place_of_an_organization_in_a_page_and_in_another_block() -> None:  # B02
    organization, place = (json.dumps(node) for node in CLINIC["@graph"])
    (clinic,) = items(read_bytes("clinic.html", page(place, organization)))
    assert clinic.name == "Hillside Clinic"
    assert "4 Mill Rd" in clinic.text
    assert clinic.schema_object["location"]["address"] == "4 Mill Rd"


def test_nodes_that_refer_to_each_other_stay_finite_and_one_of_them_stays() -> None:
    graph = [
        {"@id": "#a", "@type": "Hospital", "name": "North", "parentOrganization": {"@id": "#b"}},
        {"@id": "#b", "@type": "Hospital", "name": "South", "location": {"@id": "#a"}},
    ]
    (item,) = load({"@graph": graph})
    assert "South" in item.name + item.text
    assert "North" in item.name + item.text
    assert len(json.dumps(item.schema_object)) < 2000


def test_graph_that_doubles_with_every_reference_stays_small() -> None:
    graph = [
        {"@id": f"#{n}", "@type": "Person", "name": f"P{n}", "knowsAbout": [{"@id": f"#{n + 1}"}] * 30}
        for n in range(12)
    ]
    root = {"@type": "Event", "name": "Fair", "performer": [{"@id": "#0"}] * 30}
    (fair,) = load({"@graph": [root, *graph]})
    assert fair.name == "Fair"
    assert len(json.dumps(fair.schema_object)) < 300_000


def test_neighbours_are_not_taken_for_parts() -> None:
    graph = [
        {"@id": "#s", "@type": "EventSeries", "name": "Jazz nights", "subEvent": [{"@id": "#e"}]},
        {"@id": "#e", "@type": "MusicEvent", "name": "First night", "superEvent": {"@id": "#s"}},
    ]
    assert [item.name for item in load({"@graph": graph})] == ["Jazz nights", "First night"]


def test_main_entity_of_a_page_is_the_item() -> None:
    node = {
        "@type": "WebPage",
        "name": "Soup | Site",
        "mainEntity": {"@type": "Recipe", "name": "Soup", "description": "Warm."},
    }
    reads = read_bytes("soup.html", page(json.dumps(node)))
    assert [(item.types, item.name) for item in items(reads)] == [(("Recipe",), "Soup")]
    assert [read.reason for read in rest(reads)] == ["about the same page as Soup"]


def test_things_in_a_list_are_items_and_the_list_is_none() -> None:
    entries = [
        {"@type": "ListItem", "position": n, "item": {"@type": "Product", "name": name, "url": f"/p/{n}"}}
        for n, name in enumerate(("Lamp", "Chair"))
    ]
    reads = read_bytes("list.json", json.dumps({"@type": "ItemList", "itemListElement": entries}))
    assert [item.name for item in items(reads)] == ["Lamp", "Chair"]
    assert [read.reason for read in rest(reads)] == ["page furniture (ItemList)"]


def test_article_beside_a_recipe_is_dropped_only_if_it_is_about_the_same_page() -> None:
    recipe = {"@type": "Recipe", "name": "Soup", "url": "https://e.com/soup", "description": "Warm."}
    same = {"@type": "Article", "headline": "How I cook", "url": "http://e.com/soup#article"}
    other = {"@type": "Article", "headline": "A year of soups", "url": "https://e.com/year"}
    names = [item.name for item in load([recipe, same, other], "https://e.com/soup")]
    assert names == ["Soup", "A year of soups"]


def test_site_owner_is_an_item_in_a_file_of_owners_and_not_beside_a_recipe() -> None:
    owner = {"@type": "Organization", "name": "Kitchen", "description": "We cook."}
    recipe = {"@type": "Recipe", "name": "Soup", "description": "Warm."}
    assert [item.name for item in load([owner])] == ["Kitchen"]
    reads = read_bytes("soup.html", page(json.dumps(owner), json.dumps(recipe)))
    assert [item.name for item in items(reads)] == ["Soup"]


def test_questions_and_reviews_beside_a_product_are_found_with_it() -> None:
    product = {"@type": "Product", "name": "Kettle", "description": "Boils water."}
    answer = {"@type": "Answer", "text": "Yes, for 24 months."}
    question = {"@type": "Question", "name": "Is there a warranty?", "acceptedAnswer": answer}
    faq = {"@type": "FAQPage", "mainEntity": [question]}
    review = {"@type": "Review", "reviewBody": "It whistles nicely."}
    (kettle,) = items(read_bytes("k.html", page(*map(json.dumps, (product, faq, review)))))
    assert "Is there a warranty?" in kettle.text
    assert "24 months" in kettle.text
    assert "whistles" in kettle.text


# ---------------------------------------------------------------- names and addresses


def test_same_name_and_address_twice_is_one_item() -> None:
    one = {"@type": "Recipe", "name": "Soup", "url": "https://e.com/caf%C3%A9", "description": "Warm."}
    two = {**one, "url": "https://e.com/café"}
    reads = list(items_from_object("", [one, two], "test"))
    assert len(items(reads)) == 1
    assert "the same as Soup" in rest(reads)[0].reason


def test_two_spellings_of_an_address_have_one_key() -> None:  # N03
    (one,) = load({"@type": "Recipe", "name": "Soup"}, "https://e.com/caf%C3%A9")
    (two,) = load({"@type": "Recipe", "name": "Soup"}, "https://e.com/café")
    assert one.key == two.key == "https://e.com/caf%C3%A9"
    assert two.url == "https://e.com/café"


def test_items_that_share_an_address_are_told_apart_the_same_way_each_time() -> None:
    nodes = [{"@type": "Product", "name": name, "description": "x"} for name in ("Tea", "Green Tea", "Tea")]
    nodes[2]["description"] = "other"
    first = [item.url for item in load(nodes, "https://e.com/teas")]
    assert first == [item.url for item in load(nodes, "https://e.com/teas")]
    assert first == ["https://e.com/teas", "https://e.com/teas#green-tea", "https://e.com/teas#tea"]


@pytest.mark.parametrize(
    "own",
    [
        {"url": "https://e.com/a"},
        {"@id": "https://e.com/a"},
        {"@id": "https://e.com/a#recipe"},
        {"identifier": "https://e.com/a"},
        {"mainEntityOfPage": {"@id": "https://e.com/a#webpage"}},
        {"url": ["javascript:alert(1)", "https://e.com/a"]},
        {"url": {"@id": "https://e.com/a"}, "@id": "#x"},
    ],
)
def test_address_comes_from_where_sites_put_it(own: dict[str, Any]) -> None:
    (item,) = load({"@type": "Recipe", "name": "Soup", **own})
    assert item.url == "https://e.com/a"


def test_unsafe_address_of_an_item_never_becomes_its_url() -> None:  # N05
    reads = load({"@type": "Recipe", "name": "Soup", "url": "javascript:alert(1)"})
    assert [read.url for read in reads] == ["item:#soup"]
    (failed,) = rest(list(items_from_object("javascript:alert(1)", {"name": "Soup"}, "test")))
    assert failed.outcome == "failed"


def test_markup_in_a_name_stays_text_and_formatting_goes() -> None:  # N05
    (item,) = load({"@type": "Recipe", "name": "<img src=x onerror=alert(1)>"})
    assert item.name == "<img src=x onerror=alert(1)>"
    (item,) = load({"@type": "Recipe", "name": "  Fish &amp;amp; <b>chips</b>\n"})
    assert item.name == "Fish & chips"


@pytest.mark.parametrize(
    ("node", "name"),
    [
        ({"@type": "JobPosting", "title": "Baker"}, "Baker"),
        ({"@type": "NewsArticle", "name": " ", "headline": "Flood"}, "Flood"),
        ({"@type": "Review", "reviewBody": "Good", "itemReviewed": {"name": "Inn"}}, "Review of Inn"),
        ({"@type": "Offer", "price": 5, "itemOffered": {"name": "Lamp"}}, "Lamp"),
        ({"@type": "Recipe", "name": {"@value": "Soup"}}, "Soup"),
        ({"@type": "Recipe", "name": ["", "Soup"]}, "Soup"),
        ({"@type": "Recipe", "url": "https://e.com/r/carrot-cake.html"}, "carrot cake"),
        ({"url": "https://e.com/a", "title": "Plain", "text": "No types here."}, "Plain"),
    ],
)
def test_name_falls_back_to_what_serves_as_one(node: dict[str, Any], name: str) -> None:
    (item,) = load(node)
    assert item.name == name


def test_node_with_neither_name_nor_text_is_skipped_with_a_reason() -> None:
    reads = list(items_from_object("", {"@type": "Product", "image": "https://e.com/a.jpg"}, "test"))
    assert items(reads) == []
    assert rest(reads)[0].reason == "has neither a name nor text"
    (failed,) = rest(list(items_from_object("https://e.com/a", ["text", 5, None], "test")))
    assert (failed.reason, failed.outcome) == ("holds no object", "failed")


def test_item_with_an_address_and_nothing_else_loads_by_it() -> None:
    (item,) = load({}, "https://e.com/recipes/leek-soup/")
    assert (item.name, item.text) == ("leek soup", "")


# ---------------------------------------------------------------- parsing


def test_control_characters_and_wrappers_are_forgiven() -> None:
    assert parse('{"a": "x\ty\r\nz"}') == {"a": "x\ty\r\nz"}
    assert parse('<!-- {"a": 1} -->') == {"a": 1}
    assert parse('//<![CDATA[\n{"a": 1}\n//]]>') == {"a": 1}
    assert parse('/* <![CDATA[ */ {"a": 1} /* ]]> */') == {"a": 1}
    assert parse('\ufeff{"schema:name": "x", "http://schema.org/text": "y"}') == {"name": "x", "text": "y"}


def test_other_faults_are_errors_with_their_place() -> None:
    with pytest.raises(BadJson) as caught:
        parse('{\n "a": 1, // no\n}')
    assert (caught.value.line, caught.value.column) == (2, 10)
    for text in ("", "{", "{'a': 1}", "[" * 100_000, "9" * 10_000):
        with pytest.raises(BadJson):
            parse(text)


def test_values_no_store_can_take_are_made_sane() -> None:
    value = parse('{"a": NaN, "b": "\\ud800x\\u0000", "c": 1e999, "d": 99999999999999999999999}')
    assert value == {"a": None, "b": "\ufffdx", "c": None, "d": 1e23}
    assert orjson.loads(orjson.dumps(value)) == value


_NAMES = """@id @type @graph @value name url description location author recipeInstructions itemListElement
    mainEntity mainEntityOfPage offers price acceptedAnswer review inLanguage startDate totalTime
    aggregateRating ratingValue identifier item text isPartOf"""
_KEYS = st.sampled_from(_NAMES.split())
_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(["#a", "#b", "_:c", "Recipe", "WebPage", "FAQPage", "ItemList", "Organization", "Offer"]),
    st.sampled_from(
        ["javascript:alert(1)", "https://e.com/é", "PT30M", "2024-02-30", "<b>x", "&amp;lt;", "http://["]
    ),
)
_JUNK = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(_KEYS, inner, max_size=6)),
    max_leaves=60,
)


@settings(max_examples=300, deadline=None)
@given(_JUNK, st.sampled_from(["", "https://e.com/page", "nowhere"]))
def test_no_json_makes_reading_raise(junk: Any, url: str) -> None:
    reads = list(items_from_object(url, junk, "test"))
    assert reads
    found = items(reads)
    assert len({item.key for item in found}) == len(found)
    for item in found:
        assert item.name
        assert not item.url.lower().startswith("javascript")
        orjson.dumps(item.schema_object)
        item.text.encode()


@settings(max_examples=150, deadline=None)
@given(_JUNK)
def test_no_json_in_a_page_makes_reading_raise(junk: Any) -> None:
    assert read_bytes("junk.html", page(json.dumps(junk), body="<p>Hello there</p>"))


@settings(max_examples=200, deadline=None)
@given(_JUNK)
def test_text_and_prompt_of_any_json_are_bounded(junk: Any) -> None:
    assert len(searchable_text(junk)) <= 100_000
    assert len(json.dumps(trimmed(junk), ensure_ascii=False)) <= 1_500


def test_deep_nesting_does_not_overflow() -> None:
    deep: dict[str, Any] = {"@type": "Thing", "name": "bottom"}
    for _ in range(900):
        deep = {"@type": "Recipe", "name": "level", "isRelatedTo": [deep]}
    assert load(deep)[0].name == "level"


def test_thousands_of_things_of_one_name_stay_apart() -> None:
    nodes = [
        {"@type": kind, "name": "Same", "description": f"d{n}"}
        for n in range(4000)
        for kind in ("Product", "Article")
    ]
    assert len({item.key for item in load(nodes)}) == 4000
