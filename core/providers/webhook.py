"""The `webhook` memory hook: every detected fact is posted to an address of the operator's, signed.

A request is `POST` with a JSON body `{event, id, ...}`; `X-Askable-Signature` is `sha256=` and hexadecimal
HMAC-SHA256 (RFC 2104) of `X-Askable-Timestamp`, a dot, and the body's bytes, under the shared secret. The id,
also sent as `Idempotency-Key`, is the same when a request is sent again.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import orjson

from core.errors import MemoryFailed
from core.memory.facts import Detected, Stored
from core.query import Identity

log = logging.getLogger(__name__)

SIGNATURE = "X-Askable-Signature"
TIMESTAMP = "X-Askable-Timestamp"
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 5.0
AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})


class WebhookMemory:
    """Sends facts and erasures to `url`. It keeps nothing, so there is nothing to undo or recall here."""

    def __init__(
        self,
        url: str,
        secret: str,
        *,
        timeout_s: float = 5.0,
        retries: int = 3,
        pause_s: float = FIRST_PAUSE_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`timeout_s` is for each try; a try that fails in a way that may pass is repeated `retries` times,
        after `pause_s`, twice that, and so on."""
        self.name = urlsplit(url).hostname or "the webhook"
        self._url = url
        self._secret = secret.encode()
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        # All tries with the pauses between them.
        self.timeout_s = (retries + 1) * (timeout_s + LONGEST_PAUSE_S)
        self._retries = retries
        self._pause_s = pause_s
        self._clock = clock

    async def persist(self, detected: Detected) -> Stored | None:
        """Post the fact as `memory.detected`. Raises MemoryFailed if it was not taken."""
        fact = {
            "text": detected.text,
            "kind": detected.kind,
            "scope": detected.scope,
            "identity": _identity(detected.identity),
            "site": detected.site,
            "conversation_id": detected.conversation_id,
            "query_id": detected.query_id,
            "source_turn": detected.source_turn,
            "expires_at": detected.expires_at,
            "subject": detected.subject,
            "attribute": detected.attribute,
            "agent": detected.agent,
        }
        await self._send("memory.detected", detected.nonce, {"detected": fact})
        return None

    async def erase(self, identity: Identity) -> Mapping[str, int]:
        """Post `memory.erase`: the receiver is to take out everything of this person. Raises MemoryFailed.

        Its id is its own, also where the same person's is asked for again: what was told in between, or was
        put back from a backup, must not stay because a receiver takes it for one that it has had.
        """
        number = f"erase-{secrets.token_hex(16)}"
        await self._send("memory.erase", number, {"identity": _identity(identity)})
        return {"requests": 1}

    async def _send(self, event: str, number: str, more: Mapping[str, Any]) -> None:
        body = orjson.dumps({"event": event, "id": number, **more})
        async with aiohttp.ClientSession(timeout=self._timeout) as session:
            for attempt in range(self._retries + 1):
                told, again, wait_s = await self._try(session, body, number)
                if told is None:
                    return
                if not again or attempt == self._retries:
                    break
                await asyncio.sleep(min(LONGEST_PAUSE_S, max(wait_s, self._pause_s * 2**attempt)))
        log.warning("memory.webhook_failed", extra={"event": event, "reason": told})
        raise MemoryFailed(f"{self.name} did not take it: {told}")

    async def _try(
        self, session: aiohttp.ClientSession, body: bytes, number: str
    ) -> tuple[str | None, bool, float]:
        """What went wrong (None: nothing), whether another try may help, and how long it asks to wait."""
        # Signed anew each time: a receiver refuses timestamps that are too old.
        stamp = str(int(self._clock()))
        headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": number,
            TIMESTAMP: stamp,
            SIGNATURE: f"sha256={signature(self._secret, stamp, body)}",
        }
        try:
            async with session.post(self._url, data=body, headers=headers, allow_redirects=False) as answer:
                if 200 <= answer.status < 300:
                    return None, False, 0.0
                asked = answer.headers.get("Retry-After", "")
                wait_s = float(asked) if asked.isdigit() else 0.0
                return f"it answered {answer.status}", answer.status in AGAIN, wait_s
        except TimeoutError:
            return "it gave no answer in time", True, 0.0
        except aiohttp.ClientError:
            return "it cannot be reached", True, 0.0


def signature(secret: bytes, timestamp: str, body: bytes) -> str:
    """What a receiver computes and compares (in constant time), hexadecimal."""
    return hmac.digest(secret, timestamp.encode() + b"." + body, "sha256").hex()


def _identity(identity: Identity) -> dict[str, str]:
    return {"realm": identity.realm, "user": identity.user}
