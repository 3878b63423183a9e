"""One address, however it is spelled; and none that runs as script."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.ingestion.urls import canonical, is_web, safe, same_page


@pytest.mark.parametrize(
    "spelling",
    [
        "https://example.com/café/a%20b?q=é",
        "https://example.com/caf%C3%A9/a%20b?q=%C3%A9",
        "https://example.com/caf%c3%a9/a b?q=%c3%a9",
        "HTTPS://EXAMPLE.com:443/café/./x/../a%20b?q=é",
        "https://example.com/%63afé/a%20b?q=é",
    ],
)
def test_spellings_of_one_address_are_one(spelling: str) -> None:
    assert canonical(spelling) == "https://example.com/caf%C3%A9/a%20b?q=%C3%A9"


def test_an_escape_is_never_escaped_again_and_reserved_ones_stay() -> None:
    assert canonical("https://e.com/%25E2") == "https://e.com/%25E2"
    assert canonical("https://e.com/%E2%82%AC") == "https://e.com/%E2%82%AC"
    assert canonical("https://e.com/a%2Fb") != canonical("https://e.com/a/b")
    assert canonical("https://e.com/100%") == "https://e.com/100%25"
    assert canonical("https://münchen.de") == canonical("https://xn--mnchen-3ya.de/")
    assert canonical("http://e.com:8080") == "http://e.com:8080/"


@settings(deadline=None)
@given(st.one_of(st.text(max_size=80), st.text(max_size=60).map(lambda text: f"https://e.com/{text}")))
def test_canonical_is_idempotent_and_never_raises(text: str) -> None:
    once = canonical(text)
    assert canonical(once) == once
    assert safe(text) in {"", safe(safe(text))}


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        " JavaScript:alert(1)",
        "java\nscript:alert(1)",
        "\x01javascript:alert(1)",
        "data:text/html,<script>alert(1)</script>",
        "vbscript:x",
        "file:///etc/passwd",
        "blob:https://e.com/1",
        "http://",
        "",
        None,
        7,
        {"@id": "https://e.com"},
    ],
)
def test_what_is_no_address_to_link_is_dropped(address: object) -> None:
    assert safe(address, "https://e.com/page") == ""


def test_quotes_and_blanks_cannot_break_out_of_an_attribute() -> None:
    assert safe('https://e.com/"onmouseover="x') == "https://e.com/%22onmouseover=%22x"
    assert safe("https://e.com/a b<c>") == "https://e.com/a%20b%3Cc%3E"


def test_address_is_kept_as_it_was_given() -> None:
    assert safe(" https://Example.com/café?a=1#x ") == "https://Example.com/café?a=1#x"
    assert safe("/recipes/1", "https://e.com/a/b") == "https://e.com/recipes/1"
    assert safe("//cdn.e.com/x") == "https://cdn.e.com/x"
    assert safe("kuchynalidla.sk") == "kuchynalidla.sk"
    assert safe("localhost:8000/x") == "localhost:8000/x"
    assert not is_web("localhost:8000/x")


def test_a_page_is_the_same_with_fragment_slash_and_without_tls() -> None:
    assert same_page("http://e.com/a#recipe", "https://e.com/a/")
    assert not same_page("https://e.com/a", "https://e.com/b")
    assert not same_page("", "")
