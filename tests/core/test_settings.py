"""Where a setting comes from, and what is said of one that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from core.errors import ConfigError
from core.settings import Settings, known_keys, load_settings, seconds_of


def read(folder: Path, toml: str = "", **environ: str) -> Settings:
    if toml:
        (folder / "askable.toml").write_text(toml)
    return load_settings(environ=environ, cwd=folder)


def test_defaults_are_those_of_the_contract(tmp_path: Path) -> None:
    settings = read(tmp_path)
    assert settings.data_dir == tmp_path / "data"
    assert (settings.server.host, settings.server.port) == ("127.0.0.1", 8000)
    assert [leg.name for leg in settings.retrieval.legs] == ["bm25", "use"]
    assert (settings.retrieval.num_results, settings.ranking.max_results) == (50, 10)
    assert (settings.ranking.min_score, settings.ranking.batch_size) == (51, 10)
    assert not settings.llm.configured


def test_flag_beats_environment_beats_dotenv_beats_file(tmp_path: Path) -> None:
    (tmp_path / "askable.toml").write_text("[server]\nport = 1\nhost = 'file'\n[llm]\ntimeout_s = 3\n")
    (tmp_path / ".env").write_text("ASKABLE_SERVER__PORT=2\nASKABLE_LLM__TIMEOUT_S='4'\n# a comment\n")
    environ = {"ASKABLE_SERVER__PORT": "3"}
    settings = load_settings(environ=environ, cwd=tmp_path, flags={"server.port": 4, "server.host": None})
    assert (settings.server.port, settings.server.host, settings.llm.timeout_s) == (4, "file", 4)
    assert load_settings(environ=environ, cwd=tmp_path).server.port == 3
    assert load_settings(environ={}, cwd=tmp_path).server.port == 2


def test_lists_and_tables_in_the_environment_are_json(tmp_path: Path) -> None:
    settings = read(tmp_path, ASKABLE_RETRIEVAL__LEGS='["bm25", {"name": "use", "weight": 0.5}]')
    assert [(leg.name, leg.weight) for leg in settings.retrieval.legs] == [("bm25", None), ("use", 0.5)]
    with pytest.raises(ConfigError, match="ASKABLE_RETRIEVAL__LEGS in environment: must be JSON"):
        read(tmp_path, ASKABLE_RETRIEVAL__LEGS="bm25,use")


def test_unknown_key_names_file_line_and_a_guess(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"askable\.toml:3: `server\.prot`.*did you mean `server\.port`"):
        read(tmp_path, "data_dir = 'd'\n[server]\nprot = 8\n")
    with pytest.raises(ConfigError, match=r"ASKABLE_SERVR__PORT in environment: there is no setting"):
        read(tmp_path, ASKABLE_SERVR__PORT="1")


def test_wrong_value_names_its_place(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"askable\.toml:2: `server\.port`"):
        read(tmp_path, "[server]\nport = 99999\n")
    with pytest.raises(ConfigError, match="named twice"):
        read(tmp_path, "[retrieval]\nlegs = ['bm25', 'bm25']\n")


def test_broken_toml_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"askable\.toml: .*line 1"):
        read(tmp_path, "port = = 3\n")


def test_relative_paths_count_from_the_files_folder(tmp_path: Path) -> None:
    config = tmp_path / "etc" / "my.toml"
    config.parent.mkdir()
    config.write_text("data_dir = 'store'\nprompts_dir = 'wording'\n")
    settings = load_settings(Path("etc/my.toml"), environ={}, cwd=tmp_path)
    assert settings.data_dir == tmp_path / "etc" / "store"
    assert settings.prompts_dir == tmp_path / "etc" / "wording"


def test_missing_file_that_was_named_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no settings file .*nowhere\.toml"):
        load_settings(environ={"ASKABLE_CONFIG": "nowhere.toml"}, cwd=tmp_path)


def test_common_variables_are_read_and_never_shown(tmp_path: Path) -> None:
    settings = read(tmp_path, OPENAI_API_KEY="sk-planted", OPENAI_BASE_URL="http://127.0.0.1:1/v1")
    assert settings.llm.configured
    assert "sk-planted" not in repr(settings) + str(settings.model_dump())
    assert settings.llm.base_url == "http://127.0.0.1:1/v1"


def test_common_variable_goes_before_the_file_and_behind_an_own_one(tmp_path: Path) -> None:
    in_file = "[llm]\nbase_url = 'http://file/v1'\n"
    settings = read(tmp_path, in_file, OPENAI_BASE_URL="http://common/v1")
    assert settings.llm.base_url == "http://common/v1"
    settings = read(
        tmp_path, in_file, OPENAI_BASE_URL="http://common/v1", ASKABLE_LLM__BASE_URL="http://own/v1"
    )
    assert settings.llm.base_url == "http://own/v1"
    (tmp_path / ".env").write_text("ASKABLE_LLM__BASE_URL=http://dotenv/v1\n")
    assert read(tmp_path, in_file).llm.base_url == "http://dotenv/v1"
    settings = read(tmp_path, in_file, OPENAI_BASE_URL="http://common/v1")
    assert settings.llm.base_url == "http://common/v1"


def test_database_address_is_read_from_the_environment_before_dotenv_and_never_shown(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("DATABASE_URL=postgres://anna:planted@one/shop\n")
    theirs = "postgres://anna:planted@two/shop"
    assert read(tmp_path).database.url == SecretStr("postgres://anna:planted@one/shop")
    settings = read(tmp_path, DATABASE_URL=theirs)
    assert settings.database.url == SecretStr(theirs)
    assert settings.database.shared
    assert "planted" not in repr(settings) + str(settings.model_dump())
    ours = "postgresql://anna:planted@three/shop"
    assert read(tmp_path, DATABASE_URL=theirs, ASKABLE_DATABASE__URL=ours).database.url == SecretStr(ours)
    in_file = "[database]\nurl = 'sqlite:///x.db'\n"
    assert read(tmp_path, in_file, DATABASE_URL=theirs).database.url == SecretStr(theirs)
    (tmp_path / "askable.toml").unlink()
    (tmp_path / ".env").unlink()
    assert read(tmp_path, DATABASE_URL="").database.url is None


def test_dotenv_line_that_is_none_is_not_repeated(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("sk-planted-secret\n")
    with pytest.raises(ConfigError, match=r"\.env:1: not of the form") as caught:
        read(tmp_path)
    assert "planted" not in str(caught.value)


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("15m", 900), ("24h", 86400), ("365d", 31536000)])
def test_durations(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


def test_duration_that_is_none_says_what_is_allowed(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"`memory\.expiration`.*`soon` is not a duration"):
        read(tmp_path, "[memory]\nexpiration = 'soon'\n")


def test_an_answer_has_the_time_of_three_calls_unless_it_is_set(tmp_path: Path) -> None:
    assert read(tmp_path).llm.answer_s == 24
    assert read(tmp_path, "[llm]\ntimeout_s = 20\n").llm.answer_s == 60
    assert read(tmp_path, "[llm]\ntimeout_s = 20\nanswer_timeout_s = 30\n").llm.answer_s == 30


def test_readme_lists_every_setting() -> None:
    docs = (Path(__file__).parents[2] / "docs" / "settings.md").read_text()
    missing = [key for key in known_keys() if f"`{key}`" not in docs]
    assert missing == []


@pytest.mark.parametrize("name", ["complete", "error", "start", "two words", "", "a\nevent: x", "1"])
def test_header_that_would_be_taken_for_something_else_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate({"server": {"headers": {name: "x"}}})
    assert Settings.model_validate({"server": {"headers": {"data_retention": "none"}}}).server.headers


def test_ledger_of_erasures_is_found_beside_its_settings_file(tmp_path: Path) -> None:
    (tmp_path / "askable.toml").write_text('[memory]\nerasure_ledger = "kept/erasures.jsonl"\n')
    loaded = load_settings(tmp_path / "askable.toml", environ={}, cwd=Path("/"))
    assert loaded.memory.erasure_ledger == tmp_path / "kept" / "erasures.jsonl"
