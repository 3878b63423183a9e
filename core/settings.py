"""The settings model, and how it is read: flag > environment > `.env` > `askable.toml` > default."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import orjson
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator

from core.errors import ConfigError

PREFIX = "ASKABLE_"
CONFIG_NAME = "askable.toml"

# Variables of others that operators already have: where they go, if nothing of ours says otherwise.
COMMON_VARIABLES: Mapping[str, tuple[str, str]] = {
    "OPENAI_API_KEY": ("llm", "api_key"),
    "OPENAI_BASE_URL": ("llm", "base_url"),
    "QDRANT_URL": ("qdrant", "url"),
    "QDRANT_API_KEY": ("qdrant", "api_key"),
    "DATABASE_URL": ("database", "url"),
}


class Strict(BaseModel):
    """Base of every settings table: unknown keys are refused, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ServerSettings(Strict):
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    allowed_hosts: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()
    max_body_mb: Annotated[float, Field(gt=0, le=10_000)] = 100
    headers: dict[str, str] = Field(default_factory=dict)


class LlmSettings(Strict):
    base_url: str | None = None
    api_key: SecretStr | None = None
    model_high: str = "gpt-4.1"
    model_low: str = "gpt-4.1-mini"
    timeout_s: Annotated[float, Field(gt=0, le=600)] = 8
    max_concurrency: Annotated[int, Field(ge=1, le=10_000)] = 64
    max_retries: Annotated[int, Field(ge=0, le=10)] = 2

    @property
    def configured(self) -> bool:
        """Whether there is a model at all; otherwise the server runs without one (contract 4.6)."""
        return self.api_key is not None or self.base_url is not None


class LegSettings(Strict):
    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
    weight: Annotated[float, Field(ge=0, le=10)] | None = None


class RetrievalSettings(Strict):
    legs: Annotated[tuple[LegSettings, ...], Field(min_length=1)] = (
        LegSettings(name="bm25"),
        LegSettings(name="use"),
    )
    num_results: Annotated[int, Field(ge=1, le=1000)] = 50

    @field_validator("legs", mode="before")
    @classmethod
    def _names_or_tables(cls, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return tuple({"name": leg} if isinstance(leg, str) else leg for leg in value)
        return value

    @field_validator("legs")
    @classmethod
    def _once_each(cls, value: tuple[LegSettings, ...]) -> tuple[LegSettings, ...]:
        names = [leg.name for leg in value]
        if len(set(names)) != len(names):
            raise ValueError("a leg is named twice")
        return value


class RankingSettings(Strict):
    max_results: Annotated[int, Field(ge=1, le=100)] = 10
    min_score: Annotated[int, Field(ge=0, le=100)] = 51
    batch_size: Annotated[int, Field(ge=1, le=100)] = 10


class QdrantSettings(Strict):
    url: str | None = None
    api_key: SecretStr | None = None


class DatabaseSettings(Strict):
    url: str | None = None


class MemorySettings(Strict):
    mode: Literal["off", "explicit"] = "explicit"
    expiration: str = "365d"
    hook: str = "default"

    @field_validator("expiration")
    @classmethod
    def _is_duration(cls, value: str) -> str:
        seconds_of(value)
        return value


class IngestionSettings(Strict):
    max_tokens_per_paragraph: Annotated[int, Field(ge=20, le=8000)] | None = None
    overlapping_tokens: Annotated[int, Field(ge=0, le=1000)] | None = None


class AuthSettings(Strict):
    secret: SecretStr | None = None


class Settings(Strict):
    """All settings. Built by `load_settings`; tests build it directly."""

    data_dir: Path = Path("data")
    server: ServerSettings = ServerSettings()
    llm: LlmSettings = LlmSettings()
    retrieval: RetrievalSettings = RetrievalSettings()
    ranking: RankingSettings = RankingSettings()
    qdrant: QdrantSettings = QdrantSettings()
    database: DatabaseSettings = DatabaseSettings()
    memory: MemorySettings = MemorySettings()
    ingestion: IngestionSettings = IngestionSettings()
    auth: AuthSettings = AuthSettings()
    site_types: Path | None = None
    prompts_dir: Path | None = None


PATH_KEYS = ("data_dir", "site_types", "prompts_dir")


def seconds_of(duration: str) -> float:
    """Seconds of `90s`, `15m`, `24h`, `365d`. Raises ValueError with what is allowed."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd])", duration.strip())
    if match is None:
        raise ValueError(f"`{duration}` is not a duration: write a number and s, m, h or d, e.g. `24h`")
    return float(match[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]]


def load_settings(
    config: Path | None = None,
    *,
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Settings:
    """Read all sources once. `flags` are dotted paths to values, e.g. `{"server.port": 8080}`.

    Raises ConfigError naming the file and line, the variable, or the flag at fault.
    """
    environ = os.environ if environ is None else environ
    cwd = Path.cwd() if cwd is None else cwd
    path = _config_path(config, environ, cwd)
    folder = path.parent if path is not None else cwd
    merged: dict[str, Any] = {}
    origins: dict[tuple[str, ...], str] = {}

    if path is not None:
        _merge(merged, origins, _read_toml(path), str(path))
        _anchor_paths(merged, folder)
    dotenv = _read_dotenv(folder / ".env")
    for source, variables in ((str(folder / ".env"), dotenv), ("environment", dict(environ))):
        _merge_variables(merged, origins, variables, source)
    for dotted, value in (flags or {}).items():
        if value is not None:
            _set(merged, tuple(dotted.split(".")), value)
            origins[tuple(dotted.split("."))] = f"--{dotted.split('.')[-1]}"
    if "data_dir" not in merged:
        merged["data_dir"] = folder / "data"
    try:
        return Settings.model_validate(merged)
    except ValidationError as invalid:
        raise ConfigError(_explain(invalid, path, origins)) from None


def _config_path(config: Path | None, environ: Mapping[str, str], cwd: Path) -> Path | None:
    named = config or (Path(environ[PREFIX + "CONFIG"]) if environ.get(PREFIX + "CONFIG") else None)
    if named is not None:
        named = cwd / named
        if not named.is_file():
            raise ConfigError(f"there is no settings file {named}")
        return named
    usual = cwd / CONFIG_NAME
    return usual if usual.is_file() else None


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as broken:
        raise ConfigError(f"{path}: {broken}") from None
    except (OSError, UnicodeDecodeError) as unreadable:
        raise ConfigError(f"{path}: cannot be read: {unreadable}") from None


def _read_dotenv(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    variables: dict[str, str] = {}
    for number, raw in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.removeprefix("export ").partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name.strip()):
            # The line may hold a secret: it is not repeated.
            raise ConfigError(f"{path}:{number}: not of the form NAME=value")
        value = value.strip()
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        variables[name.strip()] = value
    return variables


def _merge(
    into: dict[str, Any], origins: dict[tuple[str, ...], str], new: Mapping[str, Any], source: str
) -> None:
    for key, value in new.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            into[key] = {**into[key], **value}
        else:
            into[key] = value
        origins[(key,)] = source


def _merge_variables(
    into: dict[str, Any], origins: dict[tuple[str, ...], str], variables: Mapping[str, str], source: str
) -> None:
    for name, (table, key) in COMMON_VARIABLES.items():
        if variables.get(name) and key not in into.get(table, {}):
            _set(into, (table, key), variables[name])
            origins[(table, key)] = f"{name} in {source}"
    for name, value in variables.items():
        if not name.startswith(PREFIX) or name == PREFIX + "CONFIG":
            continue
        path = tuple(name.removeprefix(PREFIX).lower().split("__"))
        _check_known(path, f"{name} in {source}")
        _set(into, path, _typed(path, value, f"{name} in {source}"))
        origins[path] = f"{name} in {source}"


def _set(into: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for key in path[:-1]:
        into = into.setdefault(key, {})
    into[path[-1]] = value


def _field_at(path: tuple[str, ...]) -> Any:
    """The annotation of the setting at `path`, or None."""
    model: Any = Settings
    for key in path[:-1]:
        table = getattr(model, "model_fields", {}).get(key)
        if table is None:
            return None
        model = table.annotation
        if model is dict or getattr(model, "__origin__", None) is dict:
            return str
    last = getattr(model, "model_fields", {}).get(path[-1])
    return None if last is None else last.annotation


def _check_known(path: tuple[str, ...], where: str) -> None:
    if _field_at(path) is None:
        raise ConfigError(f"{where}: there is no setting `{'.'.join(path)}`{_guess('.'.join(path))}")


def _typed(path: tuple[str, ...], value: str, where: str) -> Any:
    """Lists and tables are written as JSON in a variable; everything else is text that pydantic reads."""
    annotation = _field_at(path)
    kinds = (annotation, *get_args(annotation))
    if any(getattr(kind, "__origin__", kind) in (tuple, dict, list) for kind in kinds) or (
        isinstance(annotation, type) and issubclass(annotation, BaseModel)
    ):
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError as broken:
            raise ConfigError(f"{where}: must be JSON ({broken})") from None
    return value


def _anchor_paths(merged: dict[str, Any], folder: Path) -> None:
    for key in PATH_KEYS:
        if isinstance(merged.get(key), str):
            merged[key] = folder / merged[key]


def known_keys() -> list[str]:
    """Every setting as a dotted path, in the order of the model."""
    keys: list[str] = []
    for name, field in Settings.model_fields.items():
        table = field.annotation
        if isinstance(table, type) and issubclass(table, BaseModel):
            keys += [f"{name}.{key}" for key in table.model_fields]
        else:
            keys.append(name)
    return keys


def _guess(dotted: str) -> str:
    close = difflib.get_close_matches(dotted, known_keys(), n=1)
    return f" (did you mean `{close[0]}`?)" if close else ""


def _explain(invalid: ValidationError, path: Path | None, origins: Mapping[tuple[str, ...], str]) -> str:
    lines = []
    for error in invalid.errors(include_url=False, include_context=False, include_input=False):
        location = tuple(str(part) for part in error["loc"])
        dotted = ".".join(location)
        origin = next(
            (origins[location[:n]] for n in range(len(location), 0, -1) if location[:n] in origins), ""
        )
        if path is not None and origin == str(path):
            origin = f"{path}:{_line_of(path, location)}"
        what = error["msg"]
        if error["type"] == "extra_forbidden":
            what = f"there is no such setting{_guess(dotted)}"
        lines.append(f"{origin + ': ' if origin else ''}`{dotted}`: {what}")
    return "\n".join(lines)


def _line_of(path: Path, location: tuple[str, ...]) -> int:
    """The line of a key in a TOML file, found by its table header and name; 1 if it is written otherwise."""
    table: tuple[str, ...] = ()
    best = 1
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        stripped = line.strip()
        header = re.match(r"\[\[?\s*([^\]]+?)\s*\]", stripped)
        if header:
            table = tuple(part.strip().strip("\"'") for part in header[1].split("."))
            if table == location[: len(table)]:
                best = number
            continue
        key = re.match(r"([A-Za-z0-9_.\"'-]+)\s*=", stripped)
        if key:
            full = table + tuple(part.strip("\"'") for part in key[1].split("."))
            if full == location[: len(full)]:
                best = number
                if len(full) >= min(2, len(location)):
                    return number
    return best
