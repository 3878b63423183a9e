"""Tokens of people: which are taken, which are not, and what is asked of the issuer."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import jwt
import pytest

from core.errors import ConfigError, StoreError, Unauthorized
from core.settings import JwtSettings, load_settings
from server.credentials import AGAIN_S, REFRESH_S, Tokens
from tests.conftest import KITCHEN, Serve
from tests.fakes.issuer import AUDIENCE, NAME, SigningKey, claims_of, issuer

SECRET = "an-hmac-secret-of-the-tests-that-is-long-enough"
OWN = SigningKey.make("own")
RSA = SigningKey.make("rsa", "RS256")


def settings(**more: Any) -> JwtSettings:
    return JwtSettings.model_validate({"issuer": NAME, "audience": AUDIENCE, **more})


def hmac_token(secret: str = SECRET, *, algorithm: str = "HS256", **claims: Any) -> str:
    return jwt.encode(claims_of(**claims), secret, algorithm=algorithm)


def unsigned(header: dict[str, Any], claims: dict[str, Any], signature: str = "") -> str:
    parts = (json.dumps(part).encode() for part in (header, claims))
    return ".".join([*(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts), signature])


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


# ---------------------------------------------------------------- what is taken


async def test_secret_rsa_and_curve_keys_each_prove_a_person() -> None:
    curve = SigningKey.make("p521", "ES512")
    for key, token in (
        (SECRET, hmac_token()),
        (RSA.pem, RSA.sign()),
        (OWN.pem, OWN.sign()),
        (curve.pem, curve.sign()),
    ):
        person = await Tokens(settings(key=key)).verify(token)
        assert (person.issuer, person.subject, person.sites) == (NAME, "ada", None)
        assert person.roles == {"read"}


async def test_roles_and_sites_come_from_the_claims_that_are_configured() -> None:
    tokens = Tokens(settings(key=SECRET, roles_claim="scope", sites_claim="shops"))
    told = await tokens.verify(hmac_token(scope="openid write act-as", shops=["kitchen", 5]))
    assert told.roles == {"read", "write", "act-as"}
    assert told.sites == {"kitchen"}
    silent = await tokens.verify(hmac_token())
    assert (silent.roles, silent.sites) == ({"read"}, frozenset())


async def test_claim_can_only_narrow_the_configured_sites() -> None:
    tokens = Tokens(settings(key=SECRET, sites=["kitchen", "garden"], sites_claim="shops"))
    assert (await tokens.verify(hmac_token(shops=["garden", "vault"]))).sites == {"garden"}


async def test_claims_without_configuration_give_nothing() -> None:
    told = await Tokens(settings(key=SECRET)).verify(hmac_token(scope="admin", roles=["admin"]))
    assert told.roles == {"read"}


# ---------------------------------------------------------------- what is not


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"exp": 1}, "expired"),
        ({"exp": None}, "no `exp`"),
        ({"nbf": int(time.time()) + 4000}, "not valid yet"),
        ({"iss": "https://other.example/"}, "another issuer"),
        ({"iss": None}, "no `iss`"),
        ({"aud": "https://other.example"}, "another audience"),
        ({"aud": None}, "no `aud`"),
        ({"sub": None}, "no `sub`"),
        ({"sub": ""}, "`sub`"),
        ({"sub": "a\nb"}, "`sub`"),
    ],
)
async def test_token_that_is_not_for_here_and_now_is_refused_with_the_reason(
    claims: dict[str, Any], said: str
) -> None:
    with pytest.raises(Unauthorized) as refused:
        await Tokens(settings(key=SECRET)).verify(hmac_token(**claims))
    assert said in refused.value.message


async def test_leeway_forgives_clocks_that_differ_a_little() -> None:
    late = hmac_token(exp=int(time.time()) - 5)
    assert await Tokens(settings(key=SECRET)).verify(late)
    with pytest.raises(Unauthorized):
        await Tokens(settings(key=SECRET, leeway_s=0)).verify(late)


async def test_public_key_is_never_an_hmac_secret() -> None:
    for key in (OWN, RSA):
        forged = _hmac_by_hand(key.pem, claims_of())
        with pytest.raises(Unauthorized, match="algorithm"):
            await Tokens(settings(key=key.pem)).verify(forged)
        async with issuer(key) as server:
            with pytest.raises(Unauthorized, match="algorithm"):
                await Tokens(settings(jwks_url=server.url)).verify(forged)


def _hmac_by_hand(secret: str, claims: dict[str, Any]) -> str:
    """What an attacker signs: PyJWT itself would refuse a public key as a secret."""
    import hashlib
    import hmac

    body = unsigned({"alg": "HS256", "typ": "JWT", "kid": "own"}, claims)[:-1]
    mac = hmac.digest(secret.encode(), body.encode(), hashlib.sha256)
    return f"{body}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


@pytest.mark.parametrize("name", ["none", "None", "HS256", "RS256", "ES384", "PS256", "", 5, None])
async def test_no_algorithm_but_the_keys_own_is_taken(name: Any) -> None:
    tokens = Tokens(settings(key=OWN.pem, algorithms=["ES256"]))
    signature = OWN.sign().rsplit(".", 1)[1]
    for sent in (unsigned({"alg": name}, claims_of()), unsigned({"alg": name}, claims_of(), signature)):
        with pytest.raises(Unauthorized):
            await tokens.verify(sent)


async def test_token_of_another_key_or_with_another_body_is_refused() -> None:
    tokens = Tokens(settings(key=OWN.pem))
    head, _, signature = OWN.sign().split(".")
    other = OWN.sign(sub="eve").split(".")[1]
    for forged in (SigningKey.make("own").sign(), f"{head}.{other}.{signature}", f"{head}.{other}."):
        with pytest.raises(Unauthorized, match="signature"):
            await tokens.verify(forged)


@pytest.mark.parametrize("text", ["x", "a.b.c", "..", "é.é.é", "x" * 20_000, "e30.e30."])
async def test_text_that_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(Unauthorized):
        await Tokens(settings(key=SECRET)).verify(text)


# ---------------------------------------------------------------- the issuer's keys


async def test_keys_are_fetched_once_and_kept() -> None:
    async with issuer(OWN, RSA) as server:
        tokens = Tokens(settings(jwks_url=server.url))
        assert server.asked == 0
        for key in (OWN, RSA, OWN):
            assert (await tokens.verify(key.sign())).subject == "ada"
        assert server.asked == 1


async def test_new_key_id_is_looked_up_at_most_once_a_minute() -> None:
    new, clock = SigningKey.make("new"), Clock()
    async with issuer(OWN) as server:
        tokens = Tokens(settings(jwks_url=server.url), clock=clock)
        await tokens.verify(OWN.sign())
        server.keys.append(new.jwk)
        for _ in range(5):
            with pytest.raises(Unauthorized, match="does not list"):
                await tokens.verify(new.sign())
        assert server.asked == 1
        clock.now += AGAIN_S
        assert (await tokens.verify(new.sign())).subject == "ada"
        for kid in ("a", "b", "c"):
            with pytest.raises(Unauthorized):
                await tokens.verify(new.sign(header={"kid": kid}))
        assert server.asked == 2


async def test_key_that_the_issuer_withdraws_is_refused_within_the_hour() -> None:
    clock = Clock()
    async with issuer(OWN, RSA) as server:
        tokens = Tokens(settings(jwks_url=server.url), clock=clock)
        await tokens.verify(OWN.sign())
        server.keys = [RSA.jwk]
        clock.now += REFRESH_S
        with pytest.raises(Unauthorized, match="does not list"):
            await tokens.verify(OWN.sign())


@pytest.mark.parametrize(
    ("status", "body"), [(500, None), (302, None), (200, b"<html>"), (200, b"[]"), (200, b"{}")]
)
async def test_issuer_that_fails_is_said_to_and_asked_again_a_minute_later(
    status: int, body: bytes | None
) -> None:
    clock = Clock()
    async with issuer(OWN) as server:
        server.status, server.body = status, body
        tokens = Tokens(settings(jwks_url=server.url), clock=clock)
        for _ in range(3):
            with pytest.raises(StoreError, match="issuer"):
                await tokens.verify(OWN.sign())
        assert server.asked == 1
        server.status, server.body = 200, None
        clock.now += AGAIN_S
        assert await tokens.verify(OWN.sign())


async def test_known_keys_stay_good_while_the_issuer_is_down() -> None:
    clock = Clock()
    async with issuer(OWN) as server:
        tokens = Tokens(settings(jwks_url=server.url), clock=clock)
        await tokens.verify(OWN.sign())
        server.status = 503
        clock.now += REFRESH_S
        assert await tokens.verify(OWN.sign())


async def test_key_of_another_kind_use_or_curve_is_passed_over() -> None:
    secret = {"kty": "oct", "kid": "own", "k": base64.urlsafe_b64encode(SECRET.encode()).decode()}
    curve = {**SigningKey.make("own", "ES384").jwk}
    coding = {**OWN.jwk, "use": "enc"}
    other = {**OWN.jwk, "alg": "ES384"}
    for listed in (
        secret,
        curve,
        coding,
        other,
        {"kty": "EC"},
        5,
        {"kty": "EC", "crv": "P-256", "kid": "own"},
    ):
        async with issuer() as server:
            server.keys = [listed, RSA.jwk]  # type: ignore[list-item]
            with pytest.raises(Unauthorized):
                await Tokens(settings(jwks_url=server.url)).verify(OWN.sign())


# ---------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({}, "either `key`"),
        ({"key": SECRET, "jwks_url": "https://issuer.example/keys"}, "either `key`"),
        ({"key": "too short"}, "at least 32"),
        ({"key": SECRET, "algorithms": ["HS512"]}, "at least 64"),
        ({"key": SECRET, "algorithms": ["RS256"]}, "does not go with this key"),
        ({"key": OWN.pem, "algorithms": ["HS256"]}, "does not go with this key"),
        ({"key": OWN.pem.replace("PUBLIC", "PRIVATE")}, "public key"),
        ({"jwks_url": "http://issuer.example/keys"}, "https://"),
        ({"jwks_url": "file:///etc/passwd"}, "https://"),
        ({"key": SECRET, "sites": ["No Name"]}, "site name"),
        ({"key": SECRET, "algorithms": ["none"]}, "Input should be"),
    ],
)
def test_settings_that_would_not_be_safe_are_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        settings(**wrong)


def test_broken_pem_is_refused_at_start() -> None:
    with pytest.raises(ConfigError, match=r"auth\.jwt\.key"):
        Tokens(settings(key="-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"))


def test_token_settings_can_come_from_the_environment(tmp_path: Any) -> None:
    whole = {"ASKABLE_AUTH__JWT": json.dumps({"issuer": NAME, "audience": AUDIENCE, "key": SECRET})}
    parts = {
        "ASKABLE_AUTH__JWT__ISSUER": NAME,
        "ASKABLE_AUTH__JWT__AUDIENCE": json.dumps([AUDIENCE]),
        "ASKABLE_AUTH__JWT__KEY": SECRET,
    }
    for environ in (whole, parts):
        read = load_settings(environ=environ, cwd=tmp_path).auth.jwt
        assert read is not None
        assert (read.issuer, read.audience) == (NAME, (AUDIENCE,))
        assert SECRET not in repr(read)


# ---------------------------------------------------------------- over HTTP


async def test_person_asks_and_a_bad_token_is_challenged_with_where_to_sign_in(serve: Serve) -> None:
    async with issuer(OWN) as issuing:
        jwt_table = {"issuer": NAME, "audience": AUDIENCE, "jwks_url": issuing.url}
        server = await serve(auth={"jwt": jwt_table, "anonymous": "none"})
        await server.load("kitchen", KITCHEN)
        good = {"Authorization": f"Bearer {OWN.sign()}"}
        assert (await server.ask("curry", headers=good)).final
        bad = OWN.sign(exp=5)
        for headers in ({}, {"Authorization": f"Bearer {bad}"}):
            async with server.session.get(f"{server.url}/sites", headers=headers) as refused:
                told = refused.headers["WWW-Authenticate"]
                assert (refused.status, bad in await refused.text()) == (401, False)
            where = told.split('resource_metadata="', 1)[1].split('"', 1)[0]
            assert ("invalid_token" in told) == bool(headers)
            async with server.session.get(where) as metadata:
                body = await metadata.json()
            assert body["authorization_servers"] == [NAME]
            assert body["resource"] == server.url


async def test_mcp_is_a_resource_of_its_own(serve: Serve) -> None:
    table = {"issuer": NAME, "audience": AUDIENCE, "key": SECRET, "resource": "https://ask.example"}
    server = await serve(auth={"jwt": table, "anonymous": "none"})
    async with server.session.post(f"{server.url}/mcp") as refused:
        assert refused.status == 401
        assert 'oauth-protected-resource/mcp"' in refused.headers["WWW-Authenticate"]
    _, body = await server.json("GET", "/.well-known/oauth-protected-resource/mcp")
    assert body["resource"] == "https://ask.example/mcp"


async def test_without_tokens_there_is_nowhere_to_sign_in(serve: Serve) -> None:
    server = await serve(auth={"anonymous": "none"})
    assert (await server.json("GET", "/.well-known/oauth-protected-resource"))[0] == 404
    async with server.session.get(f"{server.url}/sites") as refused:
        assert refused.headers["WWW-Authenticate"] == 'Bearer realm="askable"'
