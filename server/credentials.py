"""What proves a name: keys of programs, and signed tokens of people (RFC 7519) with their issuer's keys."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import aiohttp
import jwt
import orjson

from core.errors import ConfigError, StoreError, Unauthorized
from core.settings import ApiKeySettings, JwtSettings, Role

log = logging.getLogger(__name__)

ROLES: frozenset[Role] = frozenset(get_args(Role))
MAX_TOKEN_CHARS = 16_000
MAX_SUBJECT_CHARS = 256

FETCH_TIMEOUT = aiohttp.ClientTimeout(total=5, connect=3)
MAX_JWKS_BYTES = 1_000_000
# An issuer's keys are looked at again this often, and for a key id that is new at most once a minute: a
# stream of forged tokens must not become one of requests to the issuer.
REFRESH_S = 3600.0
AGAIN_S = 60.0

# A key that is too short to be safe (RFC 7518, 3.2 and 3.3) is refused and not just warned of.
CHECK = jwt.PyJWT({"enforce_minimum_key_length": True})
# The kind of key an algorithm goes with (RFC 7518, 3.1 and 6.2.1.1): a token cannot choose another reading.
KEY_OF: Mapping[str, tuple[str, str | None]] = {
    "RS256": ("RSA", None),
    "RS384": ("RSA", None),
    "RS512": ("RSA", None),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
}


def digest(secret: str) -> bytes:
    """What two credentials are compared by: of equal length whatever was sent."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


@dataclass(frozen=True, slots=True)
class Key:
    """What a program's key is called and may do; `sites` None: not limited."""

    name: str
    roles: frozenset[Role]
    sites: frozenset[str] | None


class Keyring:
    """The configured keys, as digests: the secrets themselves are not kept."""

    def __init__(self, keys: Sequence[ApiKeySettings]) -> None:
        self._keys = [
            (digest(secret.get_secret_value()), Key(key.label, key.roles, key.sites))
            for key in keys
            for secret in key.secrets
        ]

    def find(self, credential: str) -> Key | None:
        """The key, or None. Takes as long for each one, and for none: all are compared, in constant time."""
        presented = digest(credential)
        found = None
        for stored, key in self._keys:
            if hmac.compare_digest(stored, presented):
                found = key
        return found


@dataclass(frozen=True, slots=True)
class Person:
    """What a genuine token says of its bearer."""

    issuer: str
    subject: str
    roles: frozenset[Role]
    sites: frozenset[str] | None


class Tokens:
    """Checks tokens of one issuer. The token's own header decides nothing: its algorithm must be one of
    those configured, and the key one of that algorithm's kind."""

    def __init__(self, settings: JwtSettings, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._jwks = Jwks(settings.jwks_url, clock=clock) if settings.jwks_url else None
        self._key: Any = None if self._jwks else _fixed_key(settings)

    async def verify(self, token: str) -> Person:
        """Raises Unauthorized with what is wrong (never the token), StoreError if the issuer's keys cannot be
        had."""
        if len(token) > MAX_TOKEN_CHARS:
            raise Unauthorized("this credential is not known here")
        try:
            header = jwt.get_unverified_header(token)
        except jwt.InvalidTokenError:
            raise Unauthorized("this credential is not known here") from None
        algorithm = header.get("alg")
        if algorithm not in self._settings.accepted:
            raise Unauthorized("this token is signed by an algorithm that is not accepted here")
        key = self._key if self._jwks is None else await self._jwks.key(header.get("kid"), algorithm)
        return self._person(self._claims(token, algorithm, key))

    def _claims(self, token: str, algorithm: str, key: Any) -> Mapping[str, Any]:
        settings = self._settings
        try:
            claims: Mapping[str, Any] = CHECK.decode(
                token,
                key,
                algorithms=[algorithm],
                issuer=settings.issuer,
                audience=list(settings.audience),
                leeway=settings.leeway_s,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except jwt.InvalidTokenError as wrong:
            raise Unauthorized(_reason(wrong)) from None
        except (jwt.PyJWTError, TypeError, ValueError):
            # A key that does not go with the algorithm, e.g. an EC key for RS256.
            raise Unauthorized("this token's signature is not right") from None
        return claims

    def _person(self, claims: Mapping[str, Any]) -> Person:
        subject = claims["sub"]
        if not subject or len(subject) > MAX_SUBJECT_CHARS or not subject.isprintable():
            raise Unauthorized(f"this token's `sub` is not 1-{MAX_SUBJECT_CHARS} printable characters")
        settings = self._settings
        roles = settings.roles
        if settings.roles_claim is not None:
            named = _texts(claims.get(settings.roles_claim))
            roles = roles | {role for role in ROLES if role in named}
        sites = settings.sites
        if settings.sites_claim is not None:
            # A token that says nothing of sites is for none of them.
            listed = _texts(claims.get(settings.sites_claim))
            sites = listed if sites is None else sites & listed
        return Person(settings.issuer, subject, roles, sites)


class Jwks:
    """An issuer's public keys (RFC 7517), fetched when first needed and kept."""

    def __init__(self, url: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._url = url
        self._clock = clock
        self._keys: tuple[Mapping[str, Any], ...] = ()
        self._asked = float("-inf")
        self._had = float("-inf")
        self._fetching = asyncio.Lock()

    async def key(self, kid: object, algorithm: str) -> Any:
        """The key with this id for this algorithm. Raises Unauthorized if there is none, StoreError if the
        issuer cannot be reached and nothing is known of its keys."""
        if self._clock() - self._had >= REFRESH_S:
            await self._refresh()
        found = self._find(kid, algorithm)
        if found is None:
            await self._refresh()
            found = self._find(kid, algorithm)
        if found is not None:
            return found
        if not self._keys:
            raise StoreError("the keys of the issuer of this token cannot be had at the moment: try again")
        raise Unauthorized("this token is signed by a key that its issuer does not list")

    async def _refresh(self) -> None:
        """Ask the issuer, unless it was asked within the minute. If it fails, what was known stays good."""
        async with self._fetching:
            if self._clock() - self._asked < AGAIN_S:
                return
            self._asked = self._clock()
            try:
                self._keys = tuple(_usable(await _fetch(self._url)))
                self._had = self._asked
            except (aiohttp.ClientError, TimeoutError, ValueError) as failed:
                log.warning("auth.jwks_failed", extra={"url": self._url, "reason": type(failed).__name__})

    def _find(self, kid: object, algorithm: str) -> Any:
        kind, curve = KEY_OF[algorithm]
        fitting = [
            key
            for key in self._keys
            if key["kty"] == kind and key.get("crv") == curve and key.get("alg", algorithm) == algorithm
        ]
        if kid is not None:
            fitting = [key for key in fitting if key.get("kid") == kid]
        if len(fitting) != 1:
            return None
        try:
            return jwt.PyJWK(dict(fitting[0]), algorithm=algorithm).key
        except jwt.PyJWTError:
            return None


async def _fetch(url: str) -> Any:
    async with (
        aiohttp.ClientSession(timeout=FETCH_TIMEOUT) as session,
        session.get(url, allow_redirects=False, headers={"Accept": "application/json"}) as response,
    ):
        if response.status != 200:
            raise ValueError(f"status {response.status}")
        body = b""
        async for block in response.content.iter_any():
            body += block
            if len(body) > MAX_JWKS_BYTES:
                raise ValueError("too large")
        return orjson.loads(body)


def _usable(document: Any) -> Iterable[Mapping[str, Any]]:
    """The public signing keys of a key set; others (RFC 7517, 4.2) are for something else."""
    keys = document.get("keys") if isinstance(document, Mapping) else None
    if not isinstance(keys, list):
        raise ValueError("not a key set")
    for key in keys:
        if isinstance(key, Mapping) and key.get("kty") in ("RSA", "EC") and key.get("use", "sig") == "sig":
            yield key


def _fixed_key(settings: JwtSettings) -> Any:
    """The configured key. Raises ConfigError for one that cannot be read."""
    text = settings.key.get_secret_value() if settings.key is not None else ""
    if settings.key_kind == "secret":
        return text
    for algorithm in settings.accepted:
        try:
            return jwt.get_algorithm_by_name(algorithm).prepare_key(text)
        except (jwt.PyJWTError, TypeError, ValueError):
            continue  # of another kind than this algorithm's
    raise ConfigError("`auth.jwt.key` is not a public key in PEM that goes with `auth.jwt.algorithms`")


def _reason(wrong: jwt.InvalidTokenError) -> str:
    if isinstance(wrong, jwt.ExpiredSignatureError):
        return "this token has expired"
    if isinstance(wrong, jwt.ImmatureSignatureError | jwt.InvalidIssuedAtError):
        return "this token is not valid yet"
    if isinstance(wrong, jwt.InvalidAudienceError):
        return "this token is for another audience"
    if isinstance(wrong, jwt.InvalidIssuerError):
        return "this token is of another issuer"
    if isinstance(wrong, jwt.MissingRequiredClaimError):
        return f"this token has no `{wrong.claim}`"
    return "this token's signature is not right"


def _texts(claim: Any) -> frozenset[str]:
    """A claim's words: a list of texts, or one text with spaces as `scope` is written (RFC 8693, 4.2)."""
    if isinstance(claim, str):
        return frozenset(claim.split())
    return frozenset(one for one in claim if isinstance(one, str)) if isinstance(claim, list) else frozenset()
