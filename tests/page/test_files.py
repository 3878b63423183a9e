"""What the files of the page may not have in them."""

from __future__ import annotations

import re
from pathlib import Path

from core import errors

STATIC = Path(__file__).parents[2] / "static"


def test_no_file_of_the_page_turns_text_into_markup_or_code() -> None:
    ways = ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "srcdoc"]
    for path in STATIC.glob("*.js"):
        text = path.read_text("utf-8")
        assert [way for way in ways if way in text] == [], path.name
    html = (STATIC / "index.html").read_text("utf-8")
    assert re.findall(r"<[^>]*\s(?:style|on\w+)=", html) == []
    assert re.findall(r"<script(?![^>]*\ssrc=)", html) == []
    addresses = re.findall(r'\b(?:src|href)="([^"]*)"', html)
    assert addresses
    assert [address for address in addresses if not address.startswith(("static/", "#"))] == []


def test_each_error_of_the_server_has_words_for_visitors() -> None:
    """Of one without words the page would show the server's own, which are for who runs it."""
    text = (STATIC / "texts.js").read_text("utf-8")
    told = set(re.findall(r"^  (\w+): (?:\[|[A-Z])", text, re.MULTILINE))
    kinds = [
        one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, errors.AskError)
    ]
    assert len(kinds) > 10
    assert {one.code for one in kinds} - told == set()
