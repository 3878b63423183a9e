"""A schema.org object in words, and the smaller object for a prompt."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest

from core.ingestion.text import date_in_words, duration_in_words, one_line, plain, searchable_text, trimmed

RECIPE: dict[str, Any] = {
    "@context": "https://schema.org",
    "@type": "Recipe",
    "name": "Walnut Sauce",
    "image": {"@type": "ImageObject", "caption": "a bowl", "url": "https://e.com/a.jpg"},
    "datePublished": "2020-01-01",
    "publisher": {"@type": "Organization", "name": "Big Media"},
    "description": "<p>Good with &quot;pansoti&quot;.</p><script>alert(1)</script>",
    "totalTime": "PT1H30M",
    "recipeYield": ["4", "4 servings"],
    "suitableForDiet": "https://schema.org/VegetarianDiet",
    "recipeIngredient": ["200 g walnuts", "1 clove <b>garlic</b>"],
    "recipeInstructions": [
        {
            "@type": "HowToSection",
            "name": "The nuts",
            "itemListElement": [
                {"@type": "HowToStep", "text": "Blanch."},
                {"@type": "HowToStep", "text": "Peel."},
            ],
        },
        {"@type": "HowToStep", "name": "Mix", "text": "Crush it all."},
    ],
    "nutrition": {"@type": "NutritionInformation", "calories": "300 kcal"},
    "aggregateRating": {"@type": "AggregateRating", "ratingValue": 4.5, "bestRating": 5, "ratingCount": 12},
    "spiciness": "mild",
}


def test_recipe_reads_in_a_sensible_order_without_pictures_and_publishing_data() -> None:
    text = searchable_text(RECIPE)
    parts = [
        'Good with "pansoti".',
        "Total time: 90 minutes",
        "vegetarian diet",
        "200 g walnuts; 1 clove garlic",
    ]
    parts += [
        "The nuts:\n1. Blanch.\n2. Peel.",
        "Mix: Crush it all.",
        "Calories: 300 kcal",
        "Spiciness: mild",
    ]
    places = [text.find(part) for part in parts]
    assert -1 not in places
    assert places == sorted(places)
    assert "Rating: 4.5 of 5 (12 ratings)" in text
    for noise in ("alert", "a bowl", "https", "2020", "Big Media", "Walnut Sauce", "@"):
        assert noise not in text


ADDRESS = {"@type": "PostalAddress", "streetAddress": "4 Mill Rd", "addressLocality": "York"}
VENUE = {"@type": "Place", "name": "The Hi-Dive", "address": "7 Broadway"}
OFFER = {
    "@type": "Offer",
    "price": "9.5",
    "priceCurrency": "EUR",
    "availability": "http://schema.org/InStock",
}
RANGE = {"@type": "AggregateOffer", "lowPrice": 5, "highPrice": 9, "priceCurrency": "EUR"}
DAYS = ["Monday", "https://schema.org/Tuesday"]
HOURS = {"@type": "OpeningHoursSpecification", "dayOfWeek": DAYS, "opens": "09:00", "closes": "17:00"}
YEARLY = {"@type": "QuantitativeValue", "minValue": 30000, "maxValue": 40000, "unitText": "YEAR"}
DEPTH = {"@type": "PropertyValue", "name": "Depth", "value": 12, "unitText": "cm"}


@pytest.mark.parametrize(
    ("node", "words"),
    [
        ({"address": ADDRESS}, "4 Mill Rd, York"),
        ({"startDate": "2024-05-09T19:30:00+02:00"}, "9 May 2024, 19:30"),
        ({"location": VENUE}, "The Hi-Dive (7 Broadway)"),
        ({"offers": OFFER}, "9.5 EUR, Availability: in stock"),
        ({"offers": RANGE}, "5 to 9 EUR"),
        ({"openingHoursSpecification": HOURS}, "Monday, Tuesday 09:00-17:00"),
        (
            {"baseSalary": {"@type": "MonetaryAmount", "currency": "EUR", "value": YEARLY}},
            "30000 to 40000 YEAR EUR",
        ),
        ({"additionalProperty": DEPTH}, "Depth: 12 cm"),
        ({"keywords": "soup, beans", "genre": ["a", "b"]}, "soup, beans"),
        ({"smokingAllowed": False}, "Smoking allowed: no"),
        ({"eventStatus": "https://schema.org/EventCancelled"}, "cancelled"),
    ],
)
def test_values_are_said_as_people_say_them(node: dict[str, Any], words: str) -> None:
    assert words in searchable_text({"@type": "Thing", "name": "It", **node})


def test_instructions_in_one_string_keep_their_lines() -> None:
    text = searchable_text({"@type": "Recipe", "recipeInstructions": "<ol><li>Cut.</li><li>Cook.</li></ol>"})
    assert text == "Instructions:\nCut.\nCook."


@pytest.mark.parametrize(
    ("iso", "words"),
    [
        ("PT30M", "30 minutes"),
        ("PT1M", "1 minute"),
        ("PT2H", "2 hours"),
        ("PT125M", "125 minutes (2 hours 5 minutes)"),
        ("P1DT2H", "1 day 2 hours"),
        ("P2W", "2 weeks"),
        ("PT0M", ""),
        ("P", ""),
        ("soon", ""),
    ],
)
def test_duration_in_words(iso: str, words: str) -> None:
    assert duration_in_words(iso) == words


def test_date_in_words() -> None:
    assert date_in_words("2024-12-01") == "1 December 2024 (2024-12-01)"
    assert date_in_words("2024-13-01") == ""
    assert date_in_words("tomorrow") == ""


def test_plain_text_is_decoded_folded_and_composed() -> None:
    assert plain("a&amp;nbsp;b<br>c<style>x{}</style>  d\x00\x07") == "a b\nc d"
    assert plain("e\u0301") == unicodedata.normalize("NFC", "e\u0301")
    assert plain("1 < 2 and 3 > 2") == "1 < 2 and 3 > 2"
    assert plain("<script>never closed") == ""


def test_hostile_markup_takes_linear_time() -> None:
    for piece in ("<script>", "<", "<!--", "</a", "&amp;", "<a " * 3):
        assert len(plain(piece * 40_000)) <= 400_000
    assert one_line("<" * 100_000) == "<" * 299 + "…"


def test_prompt_object_fits_and_starts_with_what_tells_most() -> None:
    long = {
        **RECIPE,
        "description": "word " * 2000,
        "keywords": [f"keyword {n}" for n in range(500)],
        "x": '"\\' * 3000,
    }
    small = trimmed(long)
    assert len(json.dumps(small, ensure_ascii=False)) <= 1500
    assert list(small)[:3] == ["@type", "name", "description"]
    assert small["name"] == "Walnut Sauce"
    assert {"recipeIngredient", "recipeInstructions"} & set(small)
    assert not {"image", "publisher", "@context", "datePublished"} & set(small)
    assert trimmed(RECIPE)["recipeIngredient"] == ["200 g walnuts", "1 clove garlic"]


def test_prompt_object_of_what_is_no_object() -> None:
    assert trimmed("<b>text</b>") == "text"
    assert trimmed([RECIPE, RECIPE])[0]["name"] == "Walnut Sauce"
    assert trimmed(None) is None
    assert trimmed({}) == {}
