"""The data folder belongs to one process at a time; a lock file says so."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from core.errors import StoreError


class FolderInUse(StoreError):
    """Another process has the data folder."""

    code = "folder_in_use"


class DataFolder:
    """Holds the folder from `take` to `release`; the system lets go of it however the process ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def take(self) -> None:
        """Raises StoreError naming the process that has it, or what keeps the folder from being used."""
        try:
            # What people asked to remember lies in it: for this user's eyes only.
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as refused:
            raise StoreError(f"the data folder {self.path} cannot be used: {refused.strerror}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(descriptor, 20).decode(errors="replace").strip() or "another process"
            os.close(descriptor)
            raise FolderInUse(
                f"the data folder {self.path} is in use by process {holder}: "
                "stop it, or name another folder with --data-dir"
            ) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
