"""The whiteboard: what matters for going on with a conversation, kept up behind the answers by a prompt.

One worker a conversation runs while there is something its board has not seen. It lets a burst come to rest
and takes all of it in as few calls as fit, so that fifty turns cost a handful. What the model replies is a
proposal: kinds, ids, lengths and the number of entries are settled here. A model that fails leaves the board
as it is.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from core.conversation import Conversations
from core.conversation_rows import Entry, Said, Unseen
from core.errors import AskError, BadModelReply
from core.prompting.ask import Prompter
from core.prompting.fill import DEFAULT_BUDGET, fill
from core.prompting.library import PromptLibrary
from core.prompting.variables import Value, clean
from core.providers.base import Usage
from core.query import Identity, Query

log = logging.getLogger(__name__)

MAINTENANCE = "WhiteboardMaintenancePrompt"
CONTEXT = "WhiteboardContextPrompt"
EMPTY = "WhiteboardEmptyPrompt"
PROPOSAL = "proposal"
AGREED = frozenset({"requirement", "decision"})
KINDS = frozenset({*AGREED, PROPOSAL, "action"})
MAX_ENTRY_CHARS = 300
# Of the prompt's budget: its own text, and an entry with its keys.
PROMPT_CHARS = 4000
ENTRY_CHARS = MAX_ENTRY_CHARS + 80
# A burst is over when nothing came for this long, or has been long enough.
QUIET_S = 0.5
BURST_S = 5.0
RETRY_S = (2.0, 10.0, 60.0)
# Boards are kept up beside answers, which go first.
AT_ONCE = 4
_WORDED = re.compile(r"\s*(requirement|proposal|decision|action)\s*[:–—-]\s*(.+)", re.IGNORECASE | re.DOTALL)


class Whiteboards:
    """All whiteboards. Without a model (`prompter` None) or switched off, they stay as they are."""

    def __init__(
        self,
        conversations: Conversations,
        prompter: Prompter | None,
        library: Callable[[], PromptLibrary],
        *,
        enabled: bool = True,
        max_entries: int = 10,
        quiet_s: float = QUIET_S,
        retry_s: Sequence[float] = RETRY_S,
    ) -> None:
        self._conversations = conversations
        self._prompter = prompter
        self._library = library
        self._enabled = enabled
        self.max_entries = max_entries
        self._quiet_s = quiet_s
        self._retry_s = retry_s
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._workers: dict[int, _Worker] = {}
        conversations.notify = self.notify

    async def current(self, owner: Identity, conversation_id: str) -> list[Entry]:
        """The entries as they are now; none for an unknown conversation. Raises StoreError."""
        return list((await self._conversations.history(owner, conversation_id)).board)

    async def see(
        self,
        owner: Identity,
        conversation_id: str,
        messages: Sequence[Mapping[str, Any]],
        *,
        sites: Sequence[str] = (),
    ) -> int:
        """Store `{id?, role, content, name?}`s in the conversation; how many were new. An id seen before is
        not stored twice. Only what users and assistants say, not empty, counts: instructions and the output
        of tools are nobody's requirement. `sites` choose the prompts. Raises BadQuery, StoreError."""
        said = [
            (
                str(message["id"])[:200] if message.get("id") not in (None, "") else None,
                Said(
                    role=str(message["role"]),
                    content=clean(str(message["content"])),
                    name=clean(str(message.get("name") or ""))[:200],
                    sites=tuple(sites),
                ),
            )
            for message in messages
            if message.get("role") in ("user", "assistant") and str(message.get("content") or "").strip()
        ]
        return await self._conversations.say(owner, conversation_id, said)

    async def as_text(self, owner: Identity, conversation_id: str, *, site: str = "") -> str:
        """The board to put in front of another model, by the site's `WhiteboardContextPrompt` (an empty one:
        `WhiteboardEmptyPrompt`); "" where that prompt is switched off. Raises StoreError."""
        entries = await self.current(owner, conversation_id) if self._enabled else []
        library = self._library()
        types = library.site(site).types
        prompt = library.find(CONTEXT if entries else EMPTY, site, types[0] if types else "Thing")
        if prompt is None:
            return ""
        values: dict[str, Value] = {
            "whiteboard.max": self.max_entries,
            "whiteboard.current": [as_prompted(entry) for entry in entries],
            "whiteboard.messages": [],
        }
        return fill(prompt, values).text

    def notify(self, row: int) -> None:
        """Something was said in the conversation of this row: its board is brought up to date soon."""
        if self._prompter is None or not self._enabled:
            return
        worker = self._workers.get(row)
        if worker is None:
            self._workers[row] = worker = _Worker()
            worker.task = asyncio.create_task(self._work(row, worker))
        worker.news.set()

    async def resume(self) -> None:
        """Take up what was left when the process ended. Raises StoreError."""
        if self._prompter is not None and self._enabled:
            for row in await self._conversations.behind():
                self.notify(row)

    async def settled(self) -> None:
        """Bring all boards up to date at once: no burst and no retry is waited for."""
        await self._conversations.stored()
        while workers := list(self._workers.values()):
            for worker in workers:
                worker.hurry = True
                worker.news.set()
            await asyncio.wait([worker.task for worker in workers if worker.task is not None])

    async def close(self) -> None:
        """Stop; what is not done is taken up at the next start."""
        tasks = [worker.task for worker in self._workers.values() if worker.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # ------------------------------------------------------------ one conversation's worker

    async def _work(self, row: int, worker: _Worker) -> None:
        failures = 0
        try:
            await self._let_burst_pass(worker)
            while True:
                worker.news.clear()
                try:
                    async with self._slots:
                        more = await self._bring_up(row)
                    failures = 0
                except AskError as failed:
                    if failures == len(self._retry_s):
                        # The next turn, or the next start, tries again.
                        log.warning("whiteboard.given_up", extra={"reason": failed.message})
                        return
                    await worker.rest(self._retry_s[failures])
                    failures += 1
                    continue
                if worker.news.is_set():
                    await self._let_burst_pass(worker)
                elif not more:
                    return
        except Exception:
            # Nobody waits for this task's error: it must not be lost.
            log.exception("whiteboard.failed")
        finally:
            del self._workers[row]

    async def _let_burst_pass(self, worker: _Worker) -> None:
        until = time.monotonic() + BURST_S
        while time.monotonic() < until:
            worker.news.clear()
            if not await worker.rest(self._quiet_s):
                return

    async def _bring_up(self, row: int) -> bool:
        """One call's worth; whether there is more. Raises ModelError and its kinds (BadModelReply for a board
        of which nothing can be used: it is no empty one), StoreError."""
        room = max(DEFAULT_BUDGET - PROMPT_CHARS - self.max_entries * ENTRY_CHARS, DEFAULT_BUDGET // 4)
        unseen = await self._conversations.unseen(row, room)
        if unseen is None:
            return False
        board, next_entry = unseen.board, unseen.next_entry
        proposed = await self._ask(unseen) if unseen.said else None
        if proposed == [] and any(entry.kind in AGREED for entry in board):
            # What was agreed on is given up only by a model that says so twice.
            proposed = await self._ask(unseen)
        if proposed is not None:
            board, next_entry = merged(unseen, proposed, self.max_entries)
            if proposed and not board:
                raise BadModelReply("nothing of the proposed whiteboard can be used")
        await self._conversations.put_board(unseen, board, next_entry)
        return True

    async def _ask(self, unseen: Unseen) -> list[Any] | None:
        """What the model would have on the board; None where the site has switched the prompt off."""
        assert self._prompter is not None
        # For prompts and steps of a site's own that go by the question: the last thing that the person said.
        asked = next((one["content"] for one in reversed(unseen.said) if one["role"] == "user"), "")
        query = Query(text=asked, query_id="", conversation_id=unseen.conversation_id, sites=unseen.sites)
        usage = Usage()
        values: dict[str, Value] = {
            "whiteboard.max": self.max_entries,
            "whiteboard.current": [as_prompted(entry) for entry in unseen.board],
            "whiteboard.messages": unseen.said,
        }
        reply = await self._prompter.ask_apart(MAINTENANCE, query, usage, **values)
        log.info(
            "whiteboard.asked",
            extra={
                "messages": len(unseen.said),
                "model_calls": usage.calls,
                "prompt_tokens": usage.prompt_tokens,
                "completion_tokens": usage.completion_tokens,
            },
        )
        return None if reply is None else list(reply["entries"])


class _Worker:
    """A running worker: `news` is set when more was said; `hurry`: somebody waits for it."""

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self.news = asyncio.Event()
        self.hurry = False

    async def rest(self, seconds: float) -> bool:
        """Wait for news, at most so long; whether it came, and there is time to wait for more."""
        if self.hurry:
            return False
        try:
            await asyncio.wait_for(self.news.wait(), seconds)
        except TimeoutError:
            return False
        return not self.hurry


def merged(had: Unseen, proposed: Sequence[Any], most: int) -> tuple[tuple[Entry, ...], int]:
    """The board that follows from the model's proposal, and the next free number for an entry's id.

    An entry that stays keeps its id, also where the model forgot to name it. What is new or worded anew may
    have words of all that the model saw. Of two that say the same the
    first counts. Unknown kinds and empty texts are dropped. Beyond `most`, proposals go first, and older ones
    before newer.
    """
    known = {entry.id: entry for entry in had.board}
    same = {(entry.kind, _plain(entry.text)): entry for entry in had.board}
    board: dict[tuple[str, str], Entry] = {}
    used: set[str] = set()
    next_entry = had.next_entry
    seen_facts = tuple(sorted(had.used.union(*(entry.used for entry in had.board))))
    for given in _readable(proposed):
        old = known.get(str(given.get("id") or ""))
        kind = str(given.get("kind") or "").strip().lower()
        if kind not in KINDS and old is not None:
            kind = old.kind
        text = shortened(str(given.get("text") or ""))
        said = (kind, _plain(text))
        if kind not in KINDS or not text or said in board:
            continue
        if old is None or old.id in used:
            old = same.get(said)
        if old is None or old.id in used:
            entry_id, next_entry = f"w{next_entry}", next_entry + 1
        else:
            entry_id = old.id
        used.add(entry_id)
        turn = _turn(given.get("turn"), had, old)
        facts = old.used if old is not None and _plain(old.text) == said[1] else seen_facts
        board[said] = Entry(entry_id, kind, text, turn, facts)
    entries = list(board.values())
    kept = sorted(entries, key=lambda entry: (entry.kind != PROPOSAL, entry.turn), reverse=True)[:most]
    return tuple(entry for entry in entries if entry in kept), next_entry


def as_prompted(entry: Entry) -> dict[str, Value]:
    return {"id": entry.id, "kind": entry.kind, "text": entry.text, "turn": entry.turn}


def shortened(text: str) -> str:
    """One line of at most 300 characters."""
    line = " ".join(clean(text).split())
    return line if len(line) <= MAX_ENTRY_CHARS else line[: MAX_ENTRY_CHARS - 1].rstrip() + "…"


def _readable(proposed: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    """Objects as they are; lines like `DECISION: …`, which prompts of others ask for, as objects."""
    for one in proposed:
        if isinstance(one, Mapping):
            yield one
        elif isinstance(one, str) and (worded := _WORDED.fullmatch(one)):
            yield {"kind": worded[1], "text": worded[2]}


def _turn(given: object, had: Unseen, old: Entry | None) -> int:
    """The turn an entry says it comes from, if there can be such a one: a new entry's is a new turn."""
    otherwise, least = (had.upto, had.seen) if old is None else (old.turn, 0)
    try:
        turn = int(str(given))
    except ValueError:
        return otherwise
    return turn if least < turn <= had.upto else otherwise


def _plain(text: str) -> str:
    return text.casefold().rstrip(" .!")
