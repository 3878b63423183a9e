"""What sites and documents may be called."""

from __future__ import annotations

import base64
import hashlib
import re

from core.errors import BadQuery

SITE_NAME = re.compile(r"[a-z0-9._-]{1,64}")
DOCUMENT_ID = re.compile(r"[A-Za-z0-9._~-]{1,200}")


def check_site_name(name: str) -> str:
    """The name itself. Raises BadQuery for one that is not 1-64 of `a-z 0-9 . _ -`."""
    if not SITE_NAME.fullmatch(name):
        raise BadQuery(f"`{name[:80]}` is not a site name: use 1-64 of a-z 0-9 . _ -", field="site")
    return name


def check_document_id(document_id: str) -> str:
    """The id itself. Raises BadQuery for one that is not 1-200 URL-safe characters."""
    if not DOCUMENT_ID.fullmatch(document_id):
        raise BadQuery("a document id is 1-200 of A-Z a-z 0-9 . _ ~ -", field="document_id")
    return document_id


def document_id_of(site: str, url: str) -> str:
    """A document's id within its site, the same for the same address at every load."""
    digest = hashlib.sha256(f"{site}\n{url}".encode()).digest()[:15]
    return base64.b32encode(digest).decode().lower()
