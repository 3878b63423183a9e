"""Bytes to text: by byte order mark, then what the page declares, then UTF-8, then by looking at it."""

from __future__ import annotations

import codecs
import re

from charset_normalizer import from_bytes

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DECLARED = re.compile(rb"""<meta[^<>]{0,400}?charset\s*=\s*["']?\s*([a-zA-Z0-9_.:-]{2,40})""", re.I)
_XML_DECLARED = re.compile(rb"""\A\s*<\?xml[^<>]{0,200}?encoding\s*=\s*["']([a-zA-Z0-9_.:-]{2,40})""", re.I)
_HEAD = 8192  # bytes of a page that are searched for a declaration
_SAMPLE = 200_000  # bytes that are enough to tell an encoding by

# What pages declare, and the superset browsers read instead (WHATWG Encoding Standard, 4.2).
_READ_AS = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "tis-620": "cp874",
    "iso8859-11": "cp874",
    "utf-16": "utf-8",  # a declaration that could be read as ASCII is wrong about this
    "utf-16-le": "utf-8",
    "utf-16-be": "utf-8",
}
_SINGLE_BYTE = re.compile(r"cp(?:125\d|874|866)|iso8859-\d+|koi8|mac|hp|cp\d{3}$")


def decode(data: bytes) -> str:
    """The text of a file in any charset, without a byte order mark. Never raises; U+FFFD stands only where
    no charset fits."""
    mark = marked_encoding(data)
    if mark:
        return data.decode(mark, "replace").removeprefix("\ufeff")
    declared = _declared(data)
    for encoding in _candidates(declared):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    guessed = guess(data)
    if guessed:
        try:
            return data.decode(guessed)
        except UnicodeDecodeError:
            pass
    return data.decode(declared or guessed or "utf-8", "replace")


def marked_encoding(data: bytes) -> str:
    """The encoding that a byte order mark at the start of `data` names, or ""."""
    return next((name for mark, name in _MARKS if data.startswith(mark)), "")


def guess(data: bytes) -> str:
    """The encoding that `data` looks like, or ""; for data that is not UTF-8."""
    best = from_bytes(data[:_SAMPLE]).best()
    return _python_name(best.encoding) if best is not None else ""


def _declared(data: bytes) -> str:
    match = _XML_DECLARED.search(data[:_HEAD]) or _DECLARED.search(data[:_HEAD])
    return _python_name(match[1].decode("ascii")) if match else ""


def _python_name(label: str) -> str:
    try:
        info = codecs.lookup(label)
    except LookupError:
        return ""
    if not getattr(info, "_is_text_encoding", True):
        return ""
    return _READ_AS.get(info.name, info.name)


def _candidates(declared: str) -> tuple[str, ...]:
    """Bytes that are well-formed UTF-8 and not ASCII hardly mean anything else, while a one-byte charset
    fits almost any bytes: a page that declares one out of habit is asked second."""
    if not declared:
        return ("utf-8",)
    if _SINGLE_BYTE.match(declared):
        return ("utf-8", declared)
    return (declared, "utf-8")
