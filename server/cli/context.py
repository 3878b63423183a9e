"""What every verb gets: the settings, read when they are needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from core.settings import Settings, load_settings


class Context:
    def __init__(self, config: Path | None, data_dir: Path | None) -> None:
        self._config = config
        self._data_dir = data_dir

    def settings(self, flags: dict[str, Any] | None = None) -> Settings:
        """`flags` are dotted paths to values, None where not given. Raises ConfigError."""
        given = dict(flags or {})
        if self._data_dir is not None:
            given["data_dir"] = self._data_dir.absolute()
        return load_settings(self._config, flags=given)
