"""The prompts: every example question of the sites that the caller may read, and a question of one's own.

A person picks one in the client; what is sent to the model is the question, and by which tool it is answered.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, get_args

from aiohttp import web

from core.errors import BadQuery
from core.query import MAX_QUERY_CHARS, Mode
from server.auth import readable_sites
from server.keys import LIBRARY, SUGGESTER
from server.params import sites_from

OWN: Final = "ask"
MODES: Final[tuple[str, ...]] = get_args(Mode)
MAX_SLUG: Final = 40
MAX_COMPLETIONS: Final = 100
SUGGESTED: Final = 10


@dataclass(frozen=True, slots=True)
class Argument:
    """What can be filled in before a prompt is sent."""

    name: str
    description: str
    required: bool = False


MODE: Final = Argument("mode", "list: the best items; summarize: also a summary; generate: a written answer.")
OWN_ARGUMENTS: Final = (
    Argument("question", "The question, in any language.", required=True),
    Argument("site", "Only this site; else all."),
    MODE,
)


@dataclass(frozen=True, slots=True)
class Example:
    """One prompt. `question` and `site` are empty where the person fills them in."""

    name: str
    title: str
    description: str
    arguments: tuple[Argument, ...]
    question: str = ""
    site: str = ""


async def examples(request: web.Request) -> list[Example]:
    """All prompts of this caller, by site, each in the order of the site's prompt file."""
    library = request.app[LIBRARY].current
    found = [Example(OWN, "Ask the sites", "A question to all of these websites, or one.", OWN_ARGUMENTS)]
    for site in await readable_sites(request):
        for question in library.site(site).questions:
            about = f"An example of what can be asked of {site}."
            name = name_of(site, question)
            found.append(Example(name, question, about, (MODE,), question=question, site=site))
    return found


def name_of(site: str, question: str) -> str:
    """The name of a site's example: the same as long as its words are, wherever it stands in the file."""
    plain = unicodedata.normalize("NFKD", question).encode("ascii", "ignore").decode().lower()
    words = "-".join(re.findall(r"[a-z0-9]+", plain))[:MAX_SLUG].strip("-")
    # Words may be cut off, or be in letters that a name cannot have.
    mark = hashlib.sha256(question.encode()).hexdigest()[:6]
    return ".".join(part for part in (site, words, mark) if part)


async def message_of(example: Example, given: Mapping[str, str], request: web.Request) -> str:
    """What a client sends for this prompt. Raises BadQuery and UnknownSite for arguments that are wrong."""
    known = {argument.name for argument in example.arguments}
    for name in given:
        if name not in known:
            raise BadQuery(f"this prompt has no argument `{name[:80]}`", field=name[:80])
    question = example.question or given.get("question", "").strip()
    if not 0 < len(question) <= MAX_QUERY_CHARS:
        raise BadQuery(f"`question` is needed, 1 to {MAX_QUERY_CHARS} characters", field="question")
    mode = given.get("mode", "").strip() or MODES[0]
    if mode not in MODES:
        raise BadQuery(f"`mode` must be one of {', '.join(MODES)}", field="mode")
    site = example.site or given.get("site", "").strip()
    if site and not example.site:
        sites_from([site], await readable_sites(request))
    return "\n\n".join([question, " ".join(_instruction(site, mode))])


def _instruction(site: str, mode: str) -> Iterator[str]:
    where = f' with `site` "{site}"' if site else ""
    how = f' and `mode` "{mode}"' if mode != MODES[0] else ""
    if not where:
        how = how.replace(" and", " with")
    yield f"Answer this with the tool `ask`{where}{how}, giving the question as it stands here."
    yield "Name the pages that the answer comes from."


async def completions(name: str, typed: str, given: Mapping[str, str], request: web.Request) -> list[str]:
    """What an argument of that name could be, by what is typed of it; for unknown names, nothing."""
    if name == "mode":
        return [mode for mode in MODES if mode.startswith(typed.lower())]
    readable = await readable_sites(request)
    if name == "site":
        return [site for site in readable if site.startswith(typed.lower())][:MAX_COMPLETIONS]
    if name == "question":
        among = [site for site in readable if given.get("site", "") in ("", site)]
        return await request.app[SUGGESTER].names(typed, among=among, limit=SUGGESTED)
    return []
