"""An issuer of tokens on loopback: lists its public keys, counts who asks, and can be down."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

NAME = "https://issuer.example/"
AUDIENCE = "https://ask.example"
CURVES = {"ES256": ec.SECP256R1, "ES384": ec.SECP384R1, "ES512": ec.SECP521R1}


@dataclass
class SigningKey:
    """A private key of the issuer."""

    kid: str
    algorithm: str
    private: Any

    @classmethod
    def make(cls, kid: str, algorithm: str = "ES256") -> SigningKey:
        if algorithm.startswith("RS"):
            return cls(kid, algorithm, rsa.generate_private_key(65537, 2048))
        return cls(kid, algorithm, ec.generate_private_key(CURVES[algorithm]()))

    @property
    def pem(self) -> str:
        public = self.private.public_key()
        return str(public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode())

    @property
    def jwk(self) -> dict[str, Any]:
        made = jwt.get_algorithm_by_name(self.algorithm).to_jwk(self.private.public_key())
        return {**json.loads(made), "kid": self.kid, "use": "sig"}

    def sign(self, *, header: dict[str, Any] | None = None, **claims: Any) -> str:
        headers = {"kid": self.kid, **(header or {})}
        return jwt.encode(claims_of(**claims), self.private, algorithm=self.algorithm, headers=headers)


def claims_of(**claims: Any) -> dict[str, Any]:
    """The claims of a good token, with these changes; None leaves one out."""
    now = int(time.time())
    good = {"iss": NAME, "aud": AUDIENCE, "sub": "ada", "iat": now, "exp": now + 600}
    return {name: value for name, value in {**good, **claims}.items() if value is not None}


@dataclass
class Issuer:
    """The server; `body` and `status` are what it answers."""

    url: str = ""
    keys: list[dict[str, Any]] = field(default_factory=list)
    status: int = 200
    body: bytes | None = None
    asked: int = 0

    async def answer(self, _request: web.Request) -> web.Response:
        self.asked += 1
        body = json.dumps({"keys": self.keys}).encode() if self.body is None else self.body
        return web.Response(body=body, status=self.status, content_type="application/json")


@asynccontextmanager
async def issuer(*keys: SigningKey) -> AsyncIterator[Issuer]:
    """An issuer that lists these keys, on a free port."""
    running = Issuer(keys=[key.jwk for key in keys])
    app = web.Application()
    app.router.add_get("/jwks.json", running.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        running.url = f"http://127.0.0.1:{runner.addresses[0][1]}/jwks.json"
        yield running
    finally:
        await runner.cleanup()
