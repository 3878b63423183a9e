"""Signed tokens (a visitor's cookie, what is yet to be confirmed), and what is sealed for our own eyes."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from core.errors import ConfigError

SECRET_BYTES = 32
NONCE_BYTES = 12  # AES-GCM's own length (NIST SP 800-38D, 8.2)
# The realm of ids that a visitor's cookie holds. Keys' and issuers' realms have a prefix, so none is this.
COOKIE_REALM = "cookie"


class Signer:
    """Signs small JSON values with HMAC-SHA256 (RFC 2104), under a key of its own for each purpose."""

    def __init__(self, secret: bytes, clock: Callable[[], float] = time.time) -> None:
        if len(secret) < 16:
            raise ValueError("a signing secret has at least 16 bytes")
        self._secret = secret
        self._clock = clock

    def sign(self, purpose: str, value: Mapping[str, Any], *, ttl_s: float | None = None) -> str:
        """A URL-safe token; it is readable by its holder, and valid for `ttl_s` seconds if given."""
        body: dict[str, Any] = {"v": dict(value)}
        if ttl_s is not None:
            body["exp"] = self._clock() + ttl_s
        payload = _encode(orjson.dumps(body))
        return f"{payload}.{_encode(self._mac(purpose, payload))}"

    def verify(self, purpose: str, token: str) -> dict[str, Any] | None:
        """The value, or None for a token that is forged, for another purpose, or too old."""
        payload, dot, mac = token.partition(".")
        try:
            genuine = hmac.compare_digest(self._mac(purpose, payload), _decode(mac))
            body = orjson.loads(_decode(payload)) if dot and genuine else None
        except (ValueError, binascii.Error):
            return None
        if body is None or body.get("exp", float("inf")) < self._clock():
            return None
        value: dict[str, Any] = body["v"]
        return value

    def digest(self, purpose: str, text: str) -> str:
        """What stands for a text where only whoever has the secret may find out which it is: hexadecimal,
        always the same for the same."""
        return self._mac(f"digest {purpose}", text).hex()

    def seal(self, purpose: str, value: Mapping[str, Any]) -> str:
        """The value encrypted and signed (AES-256-GCM, NIST SP 800-38D): unreadable without the secret."""
        nonce = os.urandom(NONCE_BYTES)
        return _encode(nonce + self._cipher(purpose).encrypt(nonce, orjson.dumps(dict(value)), None))

    def unseal(self, purpose: str, sealed: str) -> dict[str, Any] | None:
        """The value, or None for what was not sealed with this secret for this purpose."""
        try:
            raw = _decode(sealed)
            value = orjson.loads(self._cipher(purpose).decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], None))
        except (ValueError, InvalidTag):
            return None
        return dict(value)

    def _cipher(self, purpose: str) -> AESGCM:
        return AESGCM(hmac.digest(self._secret, f"seal {purpose}".encode(), "sha256"))

    def _mac(self, purpose: str, payload: str) -> bytes:
        key = hmac.digest(self._secret, purpose.encode(), "sha256")
        return hmac.digest(key, payload.encode(), "sha256")


def load_secret(configured: str | None, data_dir: Path) -> bytes:
    """The configured secret, or the one kept in `data_dir/secret` (mode 600), made if it is not there."""
    if configured:
        return hashlib.sha256(configured.encode()).digest()
    path = data_dir / "secret"
    data_dir.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        try:
            kept = path.read_bytes()
        except OSError as unreadable:
            raise ConfigError(f"{path} cannot be read: {unreadable.strerror}") from None
        if len(kept) >= SECRET_BYTES:
            return kept
        # A kill between making and filling the file: nothing was ever signed with it.
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC)
    with os.fdopen(descriptor, "wb") as file:
        secret = secrets.token_bytes(SECRET_BYTES)
        file.write(secret)
    return secret


def new_visitor() -> str:
    """An id for an anonymous visitor, unguessable."""
    return secrets.token_urlsafe(18)


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
