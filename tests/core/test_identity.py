"""Signed tokens: only ours, only for their purpose, only in time."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.identity import Signer, load_secret
from core.query import Identity

SECRET = b"0123456789abcdef0123456789abcdef"


def test_token_gives_its_value_back() -> None:
    signer = Signer(SECRET)
    assert signer.verify("cookie", signer.sign("cookie", {"id": "é"})) == {"id": "é"}


def test_token_is_good_for_its_purpose_alone() -> None:
    signer = Signer(SECRET)
    assert signer.verify("confirm", signer.sign("cookie", {"id": 1})) is None


def test_token_of_another_secret_is_refused() -> None:
    assert Signer(SECRET).verify("p", Signer(SECRET[::-1]).sign("p", {})) is None


def test_token_expires() -> None:
    now = [1000.0]
    signer = Signer(SECRET, clock=lambda: now[0])
    token = signer.sign("p", {"a": 1}, ttl_s=600)
    now[0] = 1599.0
    assert signer.verify("p", token) == {"a": 1}
    now[0] = 1601.0
    assert signer.verify("p", token) is None


@given(st.text(max_size=80), st.integers(0, 200), st.characters())
def test_changed_and_made_up_tokens_are_refused(made_up: str, place: int, letter: str) -> None:
    signer = Signer(SECRET)
    assert signer.verify("p", made_up) is None
    token = signer.sign("p", {"id": "someone"})
    place %= len(token)
    changed = token[:place] + letter + token[place + 1 :]
    # The last letter of base64 may have bits that count for nothing.
    if changed != token and place not in (len(token) - 1, token.index(".") - 1):
        assert signer.verify("p", changed) is None


def test_short_secret_is_refused() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        Signer(b"short")


def test_secret_is_made_once_and_is_private(tmp_path: Path) -> None:
    first = load_secret(None, tmp_path / "data")
    assert load_secret(None, tmp_path / "data") == first
    assert len(first) == 32
    assert stat.S_IMODE((tmp_path / "data" / "secret").stat().st_mode) == 0o600
    assert load_secret("configured", tmp_path / "data") != first


def test_secret_that_a_kill_left_empty_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "secret").touch()
    assert len(load_secret(None, tmp_path)) == 32


@given(st.text(max_size=5), st.text(max_size=5), st.text(max_size=5), st.text(max_size=5))
def test_identities_of_two_realms_never_meet(a: str, b: str, c: str, d: str) -> None:
    assert (Identity(a, b).key == Identity(c, d).key) == ((a, b) == (c, d))


def test_sealed_value_is_read_by_its_own_secret_and_purpose_alone() -> None:
    signer = Signer(SECRET)
    sealed = signer.seal("p", {"user": "anna"})
    assert signer.unseal("p", sealed) == {"user": "anna"}
    assert signer.unseal("q", sealed) is None
    assert Signer(SECRET[::-1]).unseal("p", sealed) is None
    assert signer.seal("p", {"user": "anna"}) != sealed


@pytest.mark.parametrize("sealed", ["", "x", "AAAA", "A" * 40, "é", "a b", "=" * 8])
def test_what_was_never_sealed_is_nothing(sealed: str) -> None:
    assert Signer(SECRET).unseal("p", sealed) is None


def test_digest_is_the_same_for_the_same_and_needs_the_secret() -> None:
    one = Signer(SECRET).digest("p", "anna")
    assert one == Signer(SECRET).digest("p", "anna")
    others = {
        Signer(SECRET).digest("q", "anna"),
        Signer(SECRET).digest("p", "bo"),
        Signer(SECRET[::-1]).digest("p", "anna"),
    }
    assert one not in others
    assert len(others) == 3
