"""The prompt files of an installation, looked at again and again: a good change holds at once, a bad one not.

Files are told apart by time, size and inode, by looking: that works on every file system (also those of
containers and networks, which tell nobody of changes) and with every editor's way to save. What is new and
has no error replaces what was; of a file with an error, or of one of the base files that is gone, what was
read before stays in force. A file's error touches no other file.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import stat
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from core import resources
from core.errors import ConfigError
from core.prompting.library import PromptLibrary, not_read, settled
from core.prompting.parse import ParsedFile, Problem, parse_file

log = logging.getLogger(__name__)

LOOK_EVERY_S = 0.4
# Where there are very many files, looking at them may take a tenth of one core's time and no more.
REST_AFTER_LOOK = 9
MOST_REST_S = 0.4  # however long it took: a change waits for one look and this
Signature = tuple[int, int, int, int]


def places(site_types: Path | None, prompts_dir: Path | None) -> tuple[list[Path], list[Path]]:
    """The base files and the folders: the shipped ones, then the operator's own over them. Raises ConfigError
    for one that is not there."""
    base = [resources.site_types(), *([site_types] if site_types else [])]
    folders = [resources.prompts_dir(), *([prompts_dir] if prompts_dir else [])]
    for path in (*base, *folders):
        if not path.exists():
            raise ConfigError(f"`site_types`, `prompts_dir`: there is no {path}")
    return base, folders


class PromptFiles:
    """Holds the library in force (`current`) and what is wrong with the files as they are (`problems`).

    Reading raises ConfigError where a base file has an error at the start; later `look` raises nothing. It
    may run in a thread: `current` is replaced whole.
    """

    def __init__(
        self, base: Sequence[Path], folders: Sequence[Path], *, own_variables: Collection[str] = ()
    ) -> None:
        # Paths as text: a look at many files is mostly the cost of handling their paths.
        self._base = [str(path) for path in base]
        self._folders = list(folders)
        self._own_variables = own_variables
        self._signatures: dict[str, Signature] = {}
        self._listed: list[list[str]] = [[] for _ in folders]
        self._read: dict[str, ParsedFile] = {}  # as the files are now
        self._held: dict[str, ParsedFile] = {}  # without an error: what is in force
        self._outer: tuple[Problem, ...] = ()  # of folders, and of files that are not read
        self.problems: tuple[Problem, ...] = ()
        self.current = PromptLibrary(())
        self._look()
        bad = [self._read[path].problems for path in self._base if path not in self._held]
        wrong = [problem for problems in bad for problem in problems if problem.severity == "error"]
        if wrong:
            raise ConfigError("\n".join(str(problem) for problem in wrong))

    @property
    def errors(self) -> list[str]:
        """What keeps a file from being used as it stands now, a line each."""
        return [str(problem) for problem in self.problems if problem.severity == "error"]

    def look(self) -> list[Path]:
        """Read what has changed; gives the files that are new, changed or gone. New problems are logged."""
        before = set(self.problems)
        changed = self._look()
        if changed:
            log.info("prompts.changed", extra={"files": [str(path) for path in changed]})
        for problem in self.problems:
            if problem not in before:
                event = "prompts.refused" if problem.severity == "error" else "prompts.doubtful"
                log.warning(event, extra={"where": where(problem), "what": problem.what})
        return changed

    def _look(self) -> list[Path]:
        outer: list[Problem] = []
        now: dict[str, Signature] = {}
        for at, folder in enumerate(self._folders):
            try:
                found = entries(folder)
            except OSError as gone:
                # A folder that cannot be read says nothing of its files: they stay as they are.
                outer.append(Problem(str(folder), 1, 1, "error", f"cannot be read: {gone.strerror}"))
                found = {path: self._signatures[path] for path in self._listed[at]}
            xml = {path: status for path, status in found.items() if path.endswith(".xml")}
            outer += [not_read(Path(path)) for path in sorted(found.keys() - xml.keys())]
            if xml.keys() != set(self._listed[at]):
                self._listed[at] = sorted(xml)
            now |= xml
        now |= {path: signature(path) for path in self._base}
        changed = [path for path, status in now.items() if status != self._signatures.get(path)]
        changed += self._signatures.keys() - now.keys()
        if changed or tuple(outer) != self._outer:
            self._outer = tuple(outer)
            self._take(changed, now)
            self._signatures = now
        return [Path(path) for path in changed]

    def _take(self, changed: Sequence[str], now: Mapping[str, Signature]) -> None:
        for path in changed:
            if path in now:
                self._read[path] = parse_file(Path(path))
            else:
                self._read.pop(path, None)
                self._held.pop(path, None)
        paths = [[path] for path in self._base] + self._listed
        layers = settled([[self._read[path] for path in layer] for layer in paths], self._own_variables)
        refused: list[Problem] = []
        for path, file in zip(itertools.chain(*paths), itertools.chain(*layers), strict=True):
            if file.usable:
                self._held[path] = file
            else:
                refused += file.problems
        in_force = [[self._held[path] for path in layer if path in self._held] for layer in paths]
        library = PromptLibrary(in_force, [*self._outer, *refused])
        self.problems = tuple(dict.fromkeys(library.problems))
        self.current = library

    async def watch(self, every_s: float = LOOK_EVERY_S) -> None:
        """Look again for as long as this runs, in a thread beside the event loop."""
        took = 0.0
        while True:
            await asyncio.sleep(max(every_s, min(REST_AFTER_LOOK * took, MOST_REST_S)))
            began = time.monotonic()
            try:
                await asyncio.to_thread(self.look)
            except Exception:
                # One look that fails must not be the last: later changes would go unseen.
                log.exception("prompts.look_failed")
            took = time.monotonic() - began


def entries(folder: Path) -> dict[str, Signature]:
    """The files of a folder by path, without hidden ones; raises OSError."""
    found: dict[str, Signature] = {}
    with os.scandir(folder) as listed:
        for entry in listed:
            if entry.name[0] == ".":
                continue
            try:
                status = entry.stat()
            except FileNotFoundError:
                continue
            except OSError:
                # A link in a circle, a folder that is shut: a file that cannot be read, and that one alone.
                found[entry.path] = (0, 0, 0, 0)
                continue
            if stat.S_ISREG(status.st_mode):
                found[entry.path] = signature_of(status)
    return found


def signature(path: str) -> Signature:
    """What changes when a file does; zeros for one that is not there."""
    try:
        return signature_of(os.stat(path))
    except OSError:
        return (0, 0, 0, 0)


def signature_of(status: os.stat_result) -> Signature:
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def where(problem: Problem) -> str:
    return f"{problem.file}:{problem.line}:{problem.col}"
