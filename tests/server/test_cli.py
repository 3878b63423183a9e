"""The command line, as a person or a script runs it: a process of its own (`tests.zygote`)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import KITCHEN, ROOT, recipe
from tests.zygote import Command, command

ENVIRON = {k: v for k, v in os.environ.items() if not k.startswith(("ASKABLE_", "OPENAI_", "QDRANT_"))}
WORDS_ONLY = {"ASKABLE_RETRIEVAL__LEGS": '["bm25"]'}


def askable(
    folder: Path, *argv: str, stdin: str = "", timeout: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run a verb in `folder`; one leg, so that no model has to be loaded."""
    return command(folder, *argv, env={**ENVIRON, **WORDS_ONLY}, stdin=stdin, timeout=timeout)


def started(folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """The same in an interpreter that starts for it."""
    return subprocess.run(
        [sys.executable, "-m", "server", *argv],
        cwd=folder,
        env={**ENVIRON, **WORDS_ONLY, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@contextmanager
def server(folder: Path, *argv: str) -> Iterator[tuple[Command, dict[str, Any]]]:
    """A serving process and what it printed."""
    inward, outward = os.pipe()
    with open(inward, encoding="utf-8") as read, tempfile.TemporaryFile("w+", encoding="utf-8") as err:
        words = ("serve", "--port", "0", "--json", *argv)
        with open(outward, "w", encoding="utf-8") as out, open(os.devnull, encoding="utf-8") as nothing:
            process = Command(words, folder, {**ENVIRON, **WORDS_ONLY}, (nothing, out, err))
        try:
            line = read.readline()
            if not line:
                err.seek(0)
                raise AssertionError(err.read())
            yield process, json.loads(line)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


@pytest.fixture
def beside_a_server(tmp_path: Path) -> Iterator[None]:
    """Verbs talk to it, which is quicker than opening the data folder anew for each."""
    with server(tmp_path):
        yield


def jsonl(folder: Path, items: list[dict[str, Any]], name: str = "items.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(item) + "\n" for item in items))
    return path


def test_load_ask_search_sites_delete_without_a_server(tmp_path: Path) -> None:
    jsonl(tmp_path, KITCHEN)
    loaded = started(tmp_path, "load", "items.jsonl", "--site", "kitchen", "--json")
    assert loaded.returncode == 0, loaded.stderr
    assert json.loads(loaded.stdout)["added"] == 5
    sites = askable(tmp_path, "sites", "--json")
    assert json.loads(sites.stdout) == [{"name": "kitchen", "access": "public", "documents": 5, "chunks": 5}]
    asked = started(tmp_path, "ask", "tofu curry", "--site", "kitchen")
    assert "Tofu curry" in asked.stdout.splitlines()[0]
    searched = askable(tmp_path, "search", "beef", "--json")
    assert json.loads(searched.stdout)["results"][0]["name"] == "Beef stew"
    deleted = askable(tmp_path, "delete", "--site", "kitchen", "--json")
    assert json.loads(deleted.stdout) == {"site": "kitchen", "documents": 5, "chunks": 5, "left": 0}
    assert json.loads(askable(tmp_path, "sites", "--json").stdout) == []


@pytest.mark.usefixtures("beside_a_server")
def test_tags_are_given_filtered_by_and_shown(tmp_path: Path) -> None:
    jsonl(tmp_path, KITCHEN[:2], "mains.jsonl")
    jsonl(tmp_path, KITCHEN[2:], "others.jsonl")
    loaded = askable(
        tmp_path, "load", "mains.jsonl", "--site", "k", "--tag", "course:main", "--tag", "menu:a:b"
    )
    assert loaded.returncode == 0, loaded.stderr
    assert askable(tmp_path, "load", "others.jsonl", "--site", "k", "--tag", "course:side").returncode == 0
    listed = json.loads(askable(tmp_path, "documents", "--json").stdout)
    assert {row["name"]: row["tags"] for row in listed}["Beef stew"] == {"course": ["main"], "menu": ["a:b"]}

    tagged = askable(tmp_path, "documents", "--tag", "course:main", "--tag", "menu:a:b", "--json")
    assert {row["name"] for row in json.loads(tagged.stdout)} == {"Tofu curry", "Beef stew"}

    def found(verb: str, *tags: str) -> set[str]:
        options = [part for tag in tags for part in ("--tag", tag)]
        done = askable(tmp_path, verb, "stew curry tart soup", "--site", "k", "--json", *options)
        assert done.returncode == 0, done.stderr
        return {one["name"] for one in json.loads(done.stdout)["results"]}

    for verb in ("ask", "search"):
        assert found(verb, "course:main") == {"Tofu curry", "Beef stew"}
        assert found(verb, "course:main", "course:side") == {one["name"] for one in KITCHEN}
        assert found(verb, "course:side", "menu:a:b") == set()
    again = json.loads(askable(tmp_path, "load", "mains.jsonl", "--site", "k", "--json").stdout)
    assert (again["replaced"], again["unchanged"]) == (2, 0)
    assert (again["replaced_reasons"], again["chunks"]) == ({"its tags": 2}, 0)
    told = askable(tmp_path, "load", "others.jsonl", "--site", "k").stdout
    assert "0 added, 3 replaced (its tags: 3), 0 unchanged" in told
    assert "(0 chunks stored)" in told
    changed = [{**KITCHEN[0], "description": "Another one."}, KITCHEN[1]]
    jsonl(tmp_path, changed, "mains.jsonl")
    mixed = json.loads(
        askable(tmp_path, "load", "mains.jsonl", "--site", "k", "--tag", "menu:new", "--json").stdout
    )
    assert (mixed["replaced"], mixed["replaced_reasons"], mixed["chunks"]) == (2, {"its tags": 1}, 1)
    assert found("search", "course:main") == set()


@pytest.mark.parametrize("tag", ["main", "__site:x", ":x", "course:"])
def test_what_is_no_tag_is_said_before_anything_is_done(tmp_path: Path, tag: str) -> None:
    jsonl(tmp_path, KITCHEN[:1])
    for verb in (("load", "items.jsonl", "--site", "k"), ("ask", "stew"), ("search", "stew")):
        done = askable(tmp_path, *verb, "--tag", tag)
        assert done.returncode == 2
        assert "tags" in done.stderr
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "data" / "askable.db").exists()


def test_conversation_goes_on_with_the_next_command(tmp_path: Path) -> None:
    jsonl(tmp_path, KITCHEN)
    assert askable(tmp_path, "load", "items.jsonl", "--site", "kitchen").returncode == 0
    for question, found in (("lemon tart", "Lemon tart"), ("and for two?", "Lemon tart")):
        asked = askable(tmp_path, "ask", question, "--conversation", "c1", "--json")
        assert asked.returncode == 0, asked.stderr
        assert [item["name"] for item in json.loads(asked.stdout)["results"]] == [found]
    alone = askable(tmp_path, "ask", "and for two?", "--conversation", "c2", "--json")
    assert json.loads(alone.stdout)["results"] == []


def test_standard_input_and_tab_separated_lines(tmp_path: Path) -> None:
    line = "https://k.example/a\t" + json.dumps({"@type": "Recipe", "name": "Xyloba"}) + "\n"
    assert askable(tmp_path, "load", "-", "--site", "k", stdin=line).returncode == 0
    assert "Xyloba" in askable(tmp_path, "ask", "xyloba").stdout


def test_report_names_each_failure_and_exit_is_1(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text(
        '{"@type": "Recipe", "name": "Good", "url": "https://k/a"}\n{broken\n'
    )
    done = askable(tmp_path, "load", "bad.jsonl", "missing.html", "--site", "k")
    assert done.returncode == 1
    assert "k: 1 added" in done.stdout
    assert "bad.jsonl:2" in done.stderr
    assert "missing.html" in done.stderr
    assert "Traceback" not in done.stderr


def test_dry_run_stores_nothing(tmp_path: Path) -> None:
    jsonl(tmp_path, KITCHEN)
    done = askable(tmp_path, "load", "items.jsonl", "--site", "kitchen", "--dry-run")
    assert done.returncode == 0
    assert "Recipe\tTofu curry\thttps://kitchen.example/tofu-curry" in done.stdout
    assert not (tmp_path / "data").exists()


def test_replace_deletes_what_is_no_longer_there(tmp_path: Path) -> None:
    jsonl(tmp_path, KITCHEN)
    askable(tmp_path, "load", "items.jsonl", "--site", "kitchen")
    jsonl(tmp_path, KITCHEN[:2])
    done = askable(tmp_path, "load", "items.jsonl", "--site", "kitchen", "--replace", "--json")
    assert json.loads(done.stdout)["deleted"] == 3
    assert json.loads(askable(tmp_path, "sites", "--json").stdout)[0]["documents"] == 2


@pytest.mark.usefixtures("beside_a_server")
def test_delete_by_document_and_url(tmp_path: Path) -> None:
    jsonl(tmp_path, KITCHEN)
    askable(tmp_path, "load", "items.jsonl", "--site", "kitchen")
    documents = json.loads(askable(tmp_path, "documents", "--json").stdout)
    fields = {"document_id", "name", "url", "file", "site", "state", "chunks", "tags", "error"}
    assert fields == set(documents[0])
    one = askable(tmp_path, "delete", "--document", documents[0]["document_id"])
    assert one.stdout.startswith("deleted 1 document (1 chunk); 0 chunks left")
    assert askable(tmp_path, "delete", "--url", documents[1]["url"]).returncode == 0
    missing = askable(tmp_path, "delete", "--url", "https://nowhere.example/")
    assert missing.returncode == 1
    assert "nothing was loaded from" in missing.stderr


@pytest.mark.parametrize(
    "argv",
    [
        ["load"],
        ["load", "x.html"],
        ["load", "x.html", "--site", "Not A Name"],
        ["delete"],
        ["delete", "--document", "a", "--url", "b"],
        ["nonsense"],
        ["serve", "--port", "99999"],
        ["serve", "--workers", "2"],
        ["--config", "nowhere.toml", "sites"],
    ],
)
def test_wrong_usage_exits_2_and_says_why(tmp_path: Path, argv: list[str]) -> None:
    done = askable(tmp_path, *argv)
    assert done.returncode == 2
    assert done.stderr.strip()
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({}, "needs a Qdrant server (`qdrant.url`) and a shared database (`database.url`, PostgreSQL)"),
        ({"QDRANT_URL": "http://127.0.0.1:1"}, "needs a shared database"),
        ({"DATABASE_URL": "postgresql://127.0.0.1/x"}, "needs a Qdrant server"),
        (
            {"DATABASE_URL": "postgresql://127.0.0.1/x", "QDRANT_URL": "http://127.0.0.1:1"},
            "start `askable serve` several times",
        ),
    ],
)
def test_several_workers_say_what_they_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], told: str
) -> None:
    for name, value in environ.items():
        monkeypatch.setitem(ENVIRON, name, value)
    done = askable(tmp_path, "serve", "--workers", "2")
    assert done.returncode == 2
    assert told in done.stderr


@pytest.mark.parametrize("verb", ["serve", "load", "ask", "search", "sites", "documents", "delete"])
def test_every_verb_explains_itself_with_an_example(tmp_path: Path, verb: str) -> None:
    done = askable(tmp_path, verb, "--help")
    assert done.returncode == 0
    assert f"Example: askable {verb}" in done.stdout
    assert "--json" in done.stdout


def test_verbs_talk_to_the_server_that_has_the_folder(tmp_path: Path) -> None:
    jsonl(tmp_path, KITCHEN)
    with server(tmp_path) as (_, told):
        file = tmp_path / "data" / "server.json"
        assert json.loads(file.read_text())["url"] == told["url"]
        assert file.stat().st_mode & 0o777 == 0o600
        loaded = askable(tmp_path, "load", "items.jsonl", "--site", "kitchen", "--json")
        assert json.loads(loaded.stdout)["added"] == 5, loaded.stderr
        assert "Beef stew" in askable(tmp_path, "ask", "beef stew").stdout
        second = askable(tmp_path, "serve", "--port", "0")
        assert second.returncode == 1
        assert "in use by process" in second.stderr
    assert not file.exists()
    assert "Beef stew" in askable(tmp_path, "ask", "beef stew").stdout


def test_address_that_is_taken_is_said_plainly(tmp_path: Path) -> None:
    with server(tmp_path) as (_, told):
        other = tmp_path / "other"
        other.mkdir()
        done = askable(other, "serve", "--port", told["url"].rsplit(":", 1)[1])
    assert done.returncode == 2
    assert "choose another with --port" in done.stderr


def test_kill_during_a_load_then_load_again_is_one_clean_load(tmp_path: Path) -> None:
    many = [recipe(f"r{n}", f"Recipe {n}", f"Text {n} " * 700) for n in range(600)]
    jsonl(tmp_path, many)
    clean = tmp_path / "clean"
    clean.mkdir()
    askable(clean, "load", "../items.jsonl", "--site", "kitchen")
    with server(tmp_path) as (process, told):
        loading = subprocess.Popen(
            [sys.executable, "-m", "server", "load", "items.jsonl", "--site", "kitchen"],
            cwd=tmp_path,
            env={**ENVIRON, **WORDS_ONLY, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_for_documents(told["url"], 40)
        process.send_signal(signal.SIGKILL)
        _, said = loading.communicate(timeout=60)
    assert loading.returncode == 1
    assert "Traceback" not in said
    half = json.loads(askable(tmp_path, "sites", "--json").stdout)[0]["documents"]
    assert 0 < half < 600
    again = askable(tmp_path, "load", "items.jsonl", "--site", "kitchen", "--json")
    report = json.loads(again.stdout)
    assert report["added"] + report["unchanged"] == 600
    assert report["unchanged"] >= 40
    assert askable(tmp_path, "sites", "--json").stdout == askable(clean, "sites", "--json").stdout
    # Every point belongs to a live version: deleting the site counts the points themselves.
    counted = [
        json.loads(askable(at, "delete", "--site", "kitchen", "--json").stdout) for at in (tmp_path, clean)
    ]
    assert counted[0] == counted[1]


def wait_for_documents(url: str, count: int) -> None:
    """Until the running server has so many; each look is a request that waits for its answer."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with urllib.request.urlopen(f"{url}/sites") as response:
            sites = json.load(response)["details"]
        if sites and sites[0]["documents"] >= count:
            return
    raise AssertionError(f"no {count} documents after a minute")


def test_demo_loads_the_samples_into_an_empty_folder_only(tmp_path: Path) -> None:
    jsonl(tmp_path, KITCHEN)
    askable(tmp_path, "load", "items.jsonl", "--site", "kitchen")
    with server(tmp_path, "--demo") as (_, told):
        assert wait_until_ready(told["url"])["status"] == "ready"
        names = [site["name"] for site in json.loads(askable(tmp_path, "sites", "--json").stdout)]
    assert names == ["kitchen"]
    empty = tmp_path / "empty"
    empty.mkdir()
    with server(empty, "--demo") as (_, told):
        wait_until_ready(told["url"])
        sites = json.loads(askable(empty, "sites", "--json").stdout)
        assert {site["name"]: site["documents"] for site in sites} == {"liguria": 16, "trattoria": 25}


def wait_until_ready(url: str) -> dict[str, Any]:
    """What `/ready` says once it is 200; until then it must be 503 with a reason."""
    script = (
        "import json,sys,time,urllib.request,urllib.error\n"
        "for _ in range(600):\n"
        "    try:\n"
        "        print(urllib.request.urlopen(sys.argv[1] + '/ready').read().decode()); break\n"
        "    except urllib.error.HTTPError as e:\n"
        "        assert e.code == 503 and json.load(e)['status'], e\n"
        "        time.sleep(0.1)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, url], capture_output=True, text=True, timeout=90, check=True
    )
    told = json.loads(done.stdout)
    assert isinstance(told, dict)
    return told


def test_no_secret_in_any_output(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-planted-key\nOPENAI_BASE_URL=http://127.0.0.1:9/v1\n")
    jsonl(tmp_path, KITCHEN)
    askable(tmp_path, "load", "items.jsonl", "--site", "kitchen")
    asked = askable(tmp_path, "ask", "beef stew", timeout=180)
    assert asked.returncode == 1
    assert "Beef stew" in asked.stdout
    assert "sk-planted" not in asked.stdout + asked.stderr


def test_command_line_needs_no_key_where_anonymous_callers_are_turned_away(tmp_path: Path) -> None:
    jsonl(tmp_path, KITCHEN)
    (tmp_path / "askable.toml").write_text(
        "[auth]\nanonymous = 'none'\n[[auth.api_keys]]\nkey = 'a-key-of-nobody'\nroles = ['read']\n"
    )
    with server(tmp_path) as (_, told):
        assert askable(tmp_path, "load", "items.jsonl", "--site", "kitchen").returncode == 0
        (site,) = json.loads(askable(tmp_path, "sites", "--json").stdout)
        assert (site["access"], site["documents"]) == ("private", 5)
        assert "Tofu curry" in askable(tmp_path, "ask", "tofu curry").stdout
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{told['url']}/sites")
    without = askable(tmp_path, "delete", "--site", "kitchen", "--json")
    assert json.loads(without.stdout)["left"] == 0
