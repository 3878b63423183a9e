"""Finds the files shipped beside the code: prompts, page, samples, default prompts.

In a checkout they stand at its top, beside `core/`; in a wheel under `core/_shipped/` (pyproject.toml puts
them there), so that nothing but the package is written into the environment.
"""

from __future__ import annotations

from pathlib import Path

from core.errors import ConfigError

CORE = Path(__file__).resolve().parent


def site_types() -> Path:
    """The default prompts by schema.org type."""
    return find("site_types.xml")


def prompts_dir() -> Path:
    """The shipped folder of prompt files, one a site."""
    return find("prompts")


def static_dir() -> Path:
    """The chat page and the widget."""
    return find("static")


def samples_dir() -> Path:
    """The sample sites that `--demo` loads."""
    return find("samples")


def find(name: str, *, core: Path = CORE) -> Path:
    """Where the shipped file or folder `name` is; ConfigError when the installation lacks it."""
    places = (core / "_shipped" / name, core.parent / name)
    for place in places:
        if place.exists():
            return place
    looked = " nor ".join(str(place) for place in places)
    raise ConfigError(f"the installation lacks `{name}`: it is neither {looked}; install askable again")
