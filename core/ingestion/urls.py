"""Addresses: one canonical form to compare by, and a safe form to show and link."""

from __future__ import annotations

import re
from urllib.parse import urljoin, urlsplit, urlunsplit

MAX_URL = 2000  # characters; longer ones are data in disguise

_SCHEMES = frozenset({"http", "https", "urn", "tag", "doi"})
_DEFAULT_PORTS = {"http": 80, "https": 443}
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_UNSAFE = re.compile(r"[\s\"<>\\^`{|}]")  # never raw in an address: they break out of attributes
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):")
_HOST_WITH_PORT = re.compile(r"[a-zA-Z0-9.-]+:\d+(?:[/?#]|$)")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})|%")
_NOT_ASCII = re.compile(r"[^\x21-\x7e]")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def safe(url: object, base: str = "") -> str:
    """`url` resolved against `base` and fit to be shown and linked, or "" if it is none.

    Kept as it was given, but for white space around it and characters that break out of an attribute
    (escaped). Schemes other than http, https, urn, tag and doi give "" (`javascript:`, `data:`, ...), as
    browsers read them: control characters inside a scheme do not hide it. `file:` and `item:` are kept
    for a relative path only: what has no address is called so here, never a place on somebody's disk.
    """
    if not isinstance(url, str):
        return ""
    given = _CONTROL.sub("", url).strip()
    if not given or len(given) > MAX_URL:
        return ""
    given = _UNSAFE.sub(_escape_char, given)
    if given.startswith("//"):
        given = f"https:{given}"
    scheme = scheme_of(given)
    if not scheme:
        return _joined(base, given)
    if scheme in {"file", "item"}:
        return "" if given[5:6] == "/" else given
    if scheme not in _SCHEMES:
        return ""
    return given if scheme not in _DEFAULT_PORTS or _has_host(given) else ""


def canonical(url: str) -> str:
    """The one form in which equal addresses are equal: scheme and host in lower case and ASCII, no default
    port, no dot segments, percent-escapes only where they are needed and in upper case (RFC 3986, 6.2.2).

    An escape is never escaped again, and a reserved character keeps its escape: `%2F` is not `/`. The
    fragment stays, as it tells apart the items of a page. Idempotent; anything that is no address comes
    back with its escapes in order."""
    given = _CONTROL.sub("", url).strip()
    try:
        parts = urlsplit(given)
        port = parts.port
    except ValueError:
        return _escapes(given)
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        return _escapes(given)
    host = _ascii_host(parts.hostname)
    if port is not None and port != _DEFAULT_PORTS[parts.scheme]:
        host = f"{host}:{port}"
    path = _without_dots(_escapes(parts.path)) or "/"
    return urlunsplit((parts.scheme, host, path, _escapes(parts.query), _escapes(parts.fragment)))


def same_page(one: str, other: str) -> bool:
    """Whether two addresses are of one page: fragment, scheme's `s` and a slash at the end do not matter."""
    return bool(one) and page_key(one) == page_key(other)


def page_key(url: str) -> str:
    """What is equal for all addresses of one page (see `same_page`); "" for ""."""
    key = without_fragment(canonical(url)) if url else ""
    return key.removeprefix("https:").removeprefix("http:").rstrip("/")


def without_fragment(url: str) -> str:
    """The address of the page that `url` points into."""
    return url.partition("#")[0]


def scheme_of(url: str) -> str:
    """The scheme in lower case; "" for a relative address and for `host:port` without a scheme."""
    match = _SCHEME.match(url)
    if match is None or "." in match[1] or _HOST_WITH_PORT.match(url):
        return ""
    return match[1].lower()


def is_web(url: str) -> bool:
    """Whether `url` is an absolute http(s) address."""
    return scheme_of(url) in _DEFAULT_PORTS


def _joined(base: str, given: str) -> str:
    if not is_web(base):
        return given
    try:
        return urljoin(base, given)
    except ValueError:
        return ""


def _has_host(url: str) -> bool:
    try:
        return bool(urlsplit(url).hostname)
    except ValueError:
        return False


def _escapes(text: str) -> str:
    encoded = _NOT_ASCII.sub(_escape_char, text)
    encoded = _UNSAFE.sub(_escape_char, encoded)
    return _ESCAPE.sub(_normal_escape, encoded)


def _escape_char(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "replace"))


def _normal_escape(match: re.Match[str]) -> str:
    if match[1] is None:
        return "%25"
    byte = int(match[1], 16)
    return chr(byte) if byte in _UNRESERVED else f"%{match[1].upper()}"


def _ascii_host(host: str) -> str:
    if ":" in host:
        return f"[{host}]"
    try:
        return host.encode("idna").decode("ascii").lower()
    except UnicodeError:
        return _escapes(host).lower()


def _without_dots(path: str) -> str:
    kept: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if len(kept) > 1:
                kept.pop()
        elif part != ".":
            kept.append(part)
    if path.endswith(("/.", "/..")):
        kept.append("")
    return "/".join(kept)
