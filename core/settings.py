"""The settings model, and how it is read: flag > environment > `.env` > `askable.toml` > default."""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Self, get_args
from urllib.parse import urlsplit

import orjson
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from core.errors import BadQuery, ConfigError
from core.messages import Message
from core.names import check_site_name

PREFIX = "ASKABLE_"
CONFIG_NAME = "askable.toml"

# Variables of others that operators already have, and where they go.
COMMON_VARIABLES: Mapping[str, tuple[str, str]] = {
    "OPENAI_API_KEY": ("llm", "api_key"),
    "OPENAI_BASE_URL": ("llm", "base_url"),
    "QDRANT_URL": ("qdrant", "url"),
    "QDRANT_API_KEY": ("qdrant", "api_key"),
    "DATABASE_URL": ("database", "url"),
}


MIN_KEY_CHARS = 8
# As long as the digest (RFC 7518, 3.2).
MIN_HMAC_CHARS: Mapping[str, int] = {"HS256": 32, "HS384": 48, "HS512": 64}
Algorithm = Literal["HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "ES256", "ES384", "ES512"]
_PUBLIC: tuple[Algorithm, ...] = ("RS256", "RS384", "RS512", "ES256", "ES384", "ES512")
ALGORITHMS: Mapping[str, tuple[Algorithm, ...]] = {
    "secret": ("HS256", "HS384", "HS512"),
    "public": _PUBLIC,
    "jwks": _PUBLIC,
}


class Strict(BaseModel):
    """Base of every settings table: unknown keys are refused, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")]
# Names of events that are no message's.
EVENTS = frozenset({"start", "result", "promise", "message"})


class ServerSettings(Strict):
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    allowed_hosts: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()
    max_body_mb: Annotated[float, Field(gt=0, le=10_000)] = 100
    headers: dict[HeaderName, str] = Field(default_factory=dict)

    @field_validator("headers")
    @classmethod
    def _no_message_of_ours(cls, headers: dict[str, str]) -> dict[str, str]:
        """A header is sent under its name: one that a message has would be taken for that message."""
        ours = {message.type for message in get_args(Message)} | EVENTS
        if taken := sorted(ours & headers.keys()):
            raise ValueError(f"`{taken[0]}` is the name of a message")
        return headers


class LlmSettings(Strict):
    base_url: str | None = None
    api_key: SecretStr | None = None
    model_high: str = "gpt-4.1"
    model_low: str = "gpt-4.1-mini"
    timeout_s: Annotated[float, Field(gt=0, le=600)] = 8
    answer_timeout_s: Annotated[float, Field(gt=0, le=3600)] | None = None
    max_concurrency: Annotated[int, Field(ge=1, le=10_000)] = 64
    max_retries: Annotated[int, Field(ge=0, le=10)] = 2

    @field_validator("base_url")
    @classmethod
    def _is_web_address(cls, value: str | None) -> str | None:
        if value is not None and not re.match(r"https?://[^\s/?#]+", value):
            raise ValueError("must be a web address, e.g. http://127.0.0.1:11434/v1")
        return value

    @property
    def answer_s(self) -> float:
        """Seconds that one answer may ask of the model in all: where nothing is set, a question is made out,
        the results are ranked and the answer written, each in a call's whole time."""
        return self.answer_timeout_s if self.answer_timeout_s is not None else 3 * self.timeout_s

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


# NLWeb's numbers: a source of a written answer needs a little more than a place in a list.
MIN_SCORE = 51
SOURCE_SCORE = 55


class RankingSettings(Strict):
    max_results: Annotated[int, Field(ge=1, le=100)] = 10
    min_score: Annotated[int, Field(ge=0, le=100)] = MIN_SCORE
    batch_size: Annotated[int, Field(ge=1, le=100)] = 10

    @property
    def source_score(self) -> int:
        """The least score of a source of a written answer: `min_score`, a little more while that is the
        default."""
        return SOURCE_SCORE if self.min_score == MIN_SCORE else self.min_score


class QdrantSettings(Strict):
    url: str | None = None
    api_key: SecretStr | None = None


class DatabaseSettings(Strict):
    # It may hold a password.
    url: SecretStr | None = None

    @property
    def shared(self) -> bool:
        """Whether several servers can use it at once."""
        return self.url is not None and self.url.get_secret_value().startswith("postgres")


class ConversationSettings(Strict):
    message_limit: Annotated[int, Field(ge=1, le=1000)] = 20
    message_expiration: str = "24h"

    @field_validator("message_expiration")
    @classmethod
    def _is_duration(cls, value: str) -> str:
        seconds_of(value)
        return value


class WhiteboardSettings(Strict):
    enabled: bool = True
    max_messages: Annotated[int, Field(ge=1, le=30)] = 10


class WebhookSettings(Strict):
    """Where `memory.hook = "webhook"` sends facts, and the secret that signs them."""

    url: Annotated[str, Field(pattern=r"^https?://")] | None = None
    secret: SecretStr | None = None
    timeout_s: Annotated[float, Field(gt=0, le=60)] = 5
    retries: Annotated[int, Field(ge=0, le=10)] = 3


MemoryScope = Literal["user", "application", "agent", "thread"]


class MemorySettings(Strict):
    mode: Literal["off", "explicit", "automatic"] = "explicit"
    expiration: str = "365d"
    hook: str = "default"
    store_scope: MemoryScope = "user"
    search_scopes: tuple[MemoryScope, ...] = ("user", "application", "thread")
    webhook: WebhookSettings = WebhookSettings()
    erasure_ledger: Path | None = None

    @field_validator("expiration")
    @classmethod
    def _is_duration(cls, value: str) -> str:
        seconds_of(value)
        return value


class IngestionSettings(Strict):
    max_tokens_per_paragraph: Annotated[int, Field(ge=20, le=8000)] | None = None
    overlapping_tokens: Annotated[int, Field(ge=0, le=1000)] | None = None


Role = Literal["read", "write", "act-as", "admin"]


class ApiKeySettings(Strict):
    """One program's key: `key` is a secret, or several that are good at once while it is changed."""

    key: SecretStr | Annotated[tuple[SecretStr, ...], Field(min_length=1)]
    roles: Annotated[frozenset[Role], Field(min_length=1)]
    sites: frozenset[str] | None = None
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")] | None = None

    @property
    def secrets(self) -> tuple[SecretStr, ...]:
        return self.key if isinstance(self.key, tuple) else (self.key,)

    @property
    def label(self) -> str:
        """The name; without one, a digest of the key stands for it, so that two keys' users never meet."""
        if self.name is not None:
            return self.name
        first = self.secrets[0].get_secret_value()
        return f"unnamed:{hashlib.sha256(first.encode()).hexdigest()[:16]}"

    @field_validator("key")
    @classmethod
    def _long_enough(cls, value: SecretStr | tuple[SecretStr, ...]) -> SecretStr | tuple[SecretStr, ...]:
        for secret in value if isinstance(value, tuple) else (value,):
            text = secret.get_secret_value()
            if len(text) < MIN_KEY_CHARS or not text.isascii() or not text.isprintable() or " " in text:
                raise ValueError(f"a key has at least {MIN_KEY_CHARS} printable ASCII characters, no spaces")
        return value

    @field_validator("sites")
    @classmethod
    def _are_names(cls, value: frozenset[str] | None) -> frozenset[str] | None:
        return _site_names(value)

    @model_validator(mode="after")
    def _admin_is_for_all(self) -> Self:
        if "admin" in self.roles and self.sites is not None:
            raise ValueError("an admin key is for all sites: leave `sites` out, or give lesser roles")
        return self


class JwtSettings(Strict):
    """Tokens of people (RFC 7519), signed by `issuer` for `audience`."""

    issuer: Annotated[str, Field(min_length=1, max_length=1000)]
    audience: Annotated[tuple[str, ...], Field(min_length=1)]
    key: SecretStr | None = None
    jwks_url: str | None = None
    algorithms: tuple[Algorithm, ...] = ()
    leeway_s: Annotated[float, Field(ge=0, le=300)] = 30
    roles: frozenset[Role] = frozenset({"read"})
    roles_claim: Annotated[str, Field(min_length=1)] | None = None
    sites: frozenset[str] | None = None
    sites_claim: Annotated[str, Field(min_length=1)] | None = None
    resource: str | None = None

    @field_validator("audience", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_validator("sites")
    @classmethod
    def _are_names(cls, value: frozenset[str] | None) -> frozenset[str] | None:
        return _site_names(value)

    @field_validator("jwks_url", "resource")
    @classmethod
    def _is_safe(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        local = parts.hostname in ("127.0.0.1", "::1", "localhost")
        if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and local)):
            raise ValueError("must be an https:// address (http:// on this machine alone)")
        return value

    @model_validator(mode="after")
    def _one_kind_of_key(self) -> Self:
        if (self.key is None) == (self.jwks_url is None):
            raise ValueError("give either `key` (a secret, or a public key as PEM) or `jwks_url`")
        allowed = ALGORITHMS[self.key_kind]
        wrong = [algorithm for algorithm in self.algorithms if algorithm not in allowed]
        if wrong:
            # A public key taken for an HMAC secret would let anybody sign.
            raise ValueError(f"{wrong[0]} does not go with this key: {', '.join(allowed)}")
        if "PRIVATE KEY" in self._text:
            raise ValueError("give the public key: the private one is the issuer's")
        short = [name for name in self.accepted if len(self._text) < MIN_HMAC_CHARS.get(name, 0)]
        if short or not self.accepted:
            needed = MIN_HMAC_CHARS[(*short, "HS256")[0]]
            raise ValueError(f"the secret of {(*short, 'HS256')[0]} has at least {needed} characters")
        return self

    @property
    def key_kind(self) -> Literal["secret", "public", "jwks"]:
        if self.jwks_url is not None:
            return "jwks"
        return "public" if self._text.lstrip().startswith("-----BEGIN") else "secret"

    @property
    def accepted(self) -> tuple[str, ...]:
        """The algorithms a token may be signed with."""
        if self.algorithms:
            return self.algorithms
        length = len(self._text)
        return tuple(name for name in ALGORITHMS[self.key_kind] if length >= MIN_HMAC_CHARS.get(name, 0))

    @property
    def _text(self) -> str:
        return self.key.get_secret_value() if self.key is not None else ""


class AuthSettings(Strict):
    secret: SecretStr | None = None
    api_keys: tuple[ApiKeySettings, ...] = ()
    anonymous: Literal["ask", "none"] = "ask"
    jwt: JwtSettings | None = None

    @field_validator("api_keys")
    @classmethod
    def _once_each(cls, value: tuple[ApiKeySettings, ...]) -> tuple[ApiKeySettings, ...]:
        names = [key.name for key in value if key.name is not None]
        if len(set(names)) != len(names):
            raise ValueError("two keys have one name; a key that is being changed is `key = [new, old]`")
        secrets = [secret.get_secret_value() for key in value for secret in key.secrets]
        if len(set(secrets)) != len(secrets):
            raise ValueError("a key is given twice")
        return value


class Settings(Strict):
    """All settings. Built by `load_settings`; tests build it directly."""

    data_dir: Path = Path("data")
    server: ServerSettings = ServerSettings()
    llm: LlmSettings = LlmSettings()
    retrieval: RetrievalSettings = RetrievalSettings()
    ranking: RankingSettings = RankingSettings()
    qdrant: QdrantSettings = QdrantSettings()
    database: DatabaseSettings = DatabaseSettings()
    conversation: ConversationSettings = ConversationSettings()
    memory: MemorySettings = MemorySettings()
    whiteboard: WhiteboardSettings = WhiteboardSettings()
    ingestion: IngestionSettings = IngestionSettings()
    auth: AuthSettings = AuthSettings()
    site_types: Path | None = None
    prompts_dir: Path | None = None


PATH_KEYS = ("data_dir", "site_types", "prompts_dir", "memory.erasure_ledger")


def _site_names(names: frozenset[str] | None) -> frozenset[str] | None:
    for name in names or ():
        try:
            check_site_name(name)
        except BadQuery as wrong:
            raise ValueError(wrong.message) from None
    return names


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
    variables_by_source = {str(folder / ".env"): dotenv, "environment": dict(environ)}
    for source, variables in variables_by_source.items():
        _merge_common(merged, origins, variables, source)
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


def _merge_common(
    into: dict[str, Any], origins: dict[tuple[str, ...], str], variables: Mapping[str, str], source: str
) -> None:
    """Variables that other programs read too; one of askable's own in the same source goes before."""
    for name, path in COMMON_VARIABLES.items():
        if variables.get(name):
            _set(into, path, variables[name])
            origins[path] = f"{name} in {source}"


def _merge_variables(
    into: dict[str, Any], origins: dict[tuple[str, ...], str], variables: Mapping[str, str], source: str
) -> None:
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
        model = _table_in(table.annotation) or table.annotation
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
    lists = (tuple, dict, list, frozenset)
    if _table_in(annotation) or any(getattr(kind, "__origin__", kind) in lists for kind in kinds):
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError as broken:
            raise ConfigError(f"{where}: must be JSON ({broken})") from None
    return value


def _anchor_paths(merged: dict[str, Any], folder: Path) -> None:
    for key in PATH_KEYS:
        *tables, name = key.split(".")
        place: Any = merged
        for table in tables:
            place = place.get(table) if isinstance(place, dict) else None
        if isinstance(place, dict) and isinstance(place.get(name), str):
            place[name] = folder / place[name]


def known_keys() -> list[str]:
    """Every setting as a dotted path, in the order of the model."""
    return list(_keys_of(Settings, ""))


def _keys_of(model: type[BaseModel], prefix: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        table = _table_in(field.annotation)
        if table is None:
            yield prefix + name
        else:
            yield from _keys_of(table, f"{prefix}{name}.")


def _table_in(annotation: Any) -> type[BaseModel] | None:
    """The settings table that an annotation stands for (`Table`, or `Table | None`), if it does."""
    kinds = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return kind
    return None


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
