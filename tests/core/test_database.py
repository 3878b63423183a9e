"""The database: the same on SQLite and on PostgreSQL, shared by several servers, back after it was away."""

from __future__ import annotations

import asyncio
import secrets
import socket
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext

import core.feedback
import core.memory.tables
import core.suggest  # noqa: F401 (an index of its own)
from core.access import EVERYTHING
from core.conversation import title_from
from core.conversation_rows import Limits, Turn, add_turn
from core.database import (
    Database,
    conversations,
    documents,
    insert_missing,
    make_engine,
    metadata,
    migrate,
    sites,
    turns,
    upsert,
)
from core.documents import Document, Documents
from core.errors import BadQuery, ConfigError, StoreError
from core.ingestion.chunks import Chunk
from core.query import Identity
from tests.fakes.wire import Wire, wire_to
from tests.postgres import Postgres

ANNA = Identity("cookie", "anna")
# Tables of people without a word of theirs: digests, times and names of parts.
TEXTLESS = {"erasures", "memory_confirmations"}
WAIT_S = 30.0
LIMITS = Limits(turns=1000, expiration_s=1e9, hold_unseen=False)


@pytest.fixture
async def database(tmp_path: Path, database_url: str | None) -> AsyncIterator[Database]:
    database = await Database.open(database_url, tmp_path)
    yield database
    await database.close()


@pytest.fixture
def postgres_url(postgres: Postgres) -> Iterator[str]:
    with postgres.database() as url:
        yield url


@pytest.fixture
def empty_url(postgres: Postgres) -> Iterator[str]:
    with postgres.database(empty=True) as url:
        yield url


def a_turn(asked: str) -> Turn:
    return Turn(0, f"q-{asked}", asked, asked, (), "", (), 1000.0)


async def tell(database: Database, asked: str) -> None:
    await database.write(lambda c: add_turn(c, ANNA.key, "c", a_turn(asked), title_from(asked), LIMITS))


def put(connection: sa.Connection, name: str, access: str = "public") -> bool:
    return insert_missing(connection, sites, name=name, access=access, created_at=1.0)


# ---------------------------------------------------------------- the schema


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_migrations_from_nothing_give_the_tables_of_the_code(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    engine = make_engine(None if kind == "sqlite" else request.getfixturevalue("empty_url"), tmp_path)
    migrate(engine)
    migrate(engine)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
    engine.dispose()


def test_both_databases_have_the_same_columns_keys_and_indexes(tmp_path: Path, empty_url: str) -> None:
    shapes = []
    for url in (None, empty_url):
        engine = make_engine(url, tmp_path)
        migrate(engine)
        seen = sa.inspect(engine)
        shapes.append(
            {
                table: {
                    "columns": [
                        (c["name"], c["nullable"], c["default"] is not None and "nextval" not in c["default"])
                        for c in seen.get_columns(table)
                    ],
                    "key": seen.get_pk_constraint(table)["constrained_columns"],
                    "refers": [
                        (k["constrained_columns"], k["referred_table"], k["options"])
                        for k in seen.get_foreign_keys(table)
                    ],
                    "unique": sorted(tuple(u["column_names"]) for u in seen.get_unique_constraints(table)),
                    "indexes": sorted(
                        (str(i["name"]), tuple(i["column_names"]), bool(i["unique"]))
                        for i in seen.get_indexes(table)
                        if "duplicates_constraint" not in i
                    ),
                }
                for table in sorted(seen.get_table_names())
            }
        )
        engine.dispose()
    assert shapes[0] == shapes[1]
    assert {"documents", "turns", "memories", "feedback"} <= shapes[0].keys()


OLD_ROWS = """
INSERT INTO conversations (id, owner, conversation_id, title, last_n, created_at, used_at, board, board_seen,
    board_next)
VALUES (1, '8:key:shop:anna', 'c1', 'A soup', 1, 1000.0, 1000.0,
    '[{"id": "1", "kind": "decision", "text": "soup", "turn": 1}]', 1, 2);
INSERT INTO turns (conversation, n, query_id, asked, searched, shown, answer, sites, created_at)
VALUES (1, 1, 'q1', 'a soup', 'a warm soup', '[]', 'Here.', '["kitchen"]', 1000.0);
INSERT INTO messages (conversation, n, role, name, content, sites, created_at)
VALUES (1, 2, 'user', '', 'hello', '[]', 1000.0);
INSERT INTO memories (memory_id, realm, user_id, application, agent, thread, scope, bound_to, kind, subject,
    attribute, text, digest, status, query_id, source_turn, metadata, created_at, updated_at, indexed)
VALUES ('m1', 'key:shop', 'anna', '', '', '', 'user', '', 'fact', '', '', 'I love figs', 'd', 'active', 'q1',
    '', '{}', 1000.0, 1000.0, 0);
INSERT INTO memory_history (memory_id, realm, user_id, event, new_text, at)
VALUES ('m1', 'key:shop', 'anna', 'ADD', 'I love figs', 1000.0)
"""
KEPT = {
    "conversations": ["owner", "title", "board_next"],
    "turns": ["n", "asked", "searched", "answer", "created_at"],
    "messages": ["n", "content"],
    "memories": ["memory_id", "text", "status"],
    "memory_history": ["event", "new_text"],
}


def rows_of(engine: sa.Engine) -> dict[str, list[tuple[object, ...]]]:
    with engine.connect() as connection:
        return {
            table: [
                tuple(row) for row in connection.execute(sa.text(f"SELECT {', '.join(names)} FROM {table}"))
            ]
            for table, names in KEPT.items()
        }


def step(engine: sa.Engine, move: Callable[[Config, str], None], revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", "core:migrations")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        move(config, revision)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_rows_of_an_older_version_are_kept_on_the_way_up_and_down(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    engine = make_engine(None if kind == "sqlite" else request.getfixturevalue("empty_url"), tmp_path)
    step(engine, command.upgrade, "0003")
    with engine.begin() as connection:
        for statement in OLD_ROWS.split(";"):
            connection.exec_driver_sql(statement)
    before = rows_of(engine)
    assert all(len(rows) == 1 for rows in before.values())
    migrate(engine)
    assert rows_of(engine) == before
    with engine.connect() as connection:
        (turn,) = connection.execute(sa.select(turns.c.told, turns.c.used, turns.c.asks)).all()
    assert tuple(turn) == ([], [], False)
    step(engine, command.downgrade, "0003")
    assert rows_of(engine) == before
    migrate(engine)
    assert rows_of(engine) == before
    engine.dispose()


OPENS = """
import asyncio, sys
from pathlib import Path
from core.database import Database

async def opens():
    await (await Database.open(sys.argv[1], Path(sys.argv[2]))).close()

asyncio.run(opens())
"""


async def test_servers_that_start_together_on_an_empty_database_all_start(
    tmp_path: Path, empty_url: str
) -> None:
    started = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", OPENS, empty_url, str(tmp_path), stderr=asyncio.subprocess.PIPE
        )
        for _ in range(3)
    ]
    ended = await asyncio.gather(*(process.communicate() for process in started))
    assert [process.returncode for process in started] == [0, 0, 0], ended


@pytest.mark.both_databases
async def test_database_of_a_newer_version_is_left_alone(
    database: Database, tmp_path: Path, database_url: str | None
) -> None:
    await database.write(
        lambda c: c.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'").close()
    )
    with pytest.raises(StoreError, match="newer version"):
        await Database.open(database_url, tmp_path)


# ---------------------------------------------------------------- addresses


def test_addresses_as_hosting_services_write_them(tmp_path: Path) -> None:
    for scheme in ("postgres", "postgresql", "postgresql+psycopg"):
        engine = make_engine(f"{scheme}://anna:pa%40ss@db.example:6000/shop?sslmode=require", tmp_path)
        assert engine.dialect.name == "postgresql"
        assert engine.url.password == "pa@ss"
        assert (engine.url.host, engine.url.port, engine.url.database) == ("db.example", 6000, "shop")
        assert engine.url.query["sslmode"] == "require"


@pytest.mark.parametrize(
    "url",
    [
        "nonsense hunter2",
        "mysql://anna:hunter2@db.example/shop",
        "postgresql+asyncpg://anna:hunter2@db.example/shop",
        "postgresql://anna:hunter2@db.example:port/shop",
        "postgresql://anna:hun@ter2@db.example/shop",
    ],
)
def test_address_that_is_none_is_refused_without_its_password(url: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"database\.url") as refused:
        make_engine(url, tmp_path)
    assert "hunter2" not in str(refused.value)
    assert "ter2" not in str(refused.value)


async def test_server_that_does_not_answer_is_said_plainly_without_the_password(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        url = f"postgresql://anna:hunter2@127.0.0.1:{taken.getsockname()[1]}/shop"
        with pytest.raises(StoreError, match=r"the database does not open: .*refused") as refused:
            await Database.open(url, tmp_path)
    assert "hunter2" not in str(refused.value)
    assert "\n" not in str(refused.value)


async def test_database_that_cannot_hold_every_script_is_refused(postgres: Postgres, tmp_path: Path) -> None:
    latin = "ENCODING 'LATIN1' LOCALE_PROVIDER 'libc' LOCALE 'C'"
    with postgres.database(empty=True, more=latin) as url, pytest.raises(ConfigError, match="LATIN1"):
        await Database.open(url, tmp_path)


# ---------------------------------------------------------------- away and back


@asynccontextmanager
async def wired(postgres: Postgres, url: str, folder: Path) -> AsyncIterator[tuple[Wire, Database]]:
    """A database at the other end of a wire."""
    async with wire_to(postgres.socket) as wire:
        database = await Database.open(wire.url(url), folder)
        yield wire, database
        await database.close()


async def test_database_that_went_away_is_used_again_when_it_is_back(
    postgres: Postgres, postgres_url: str, tmp_path: Path
) -> None:
    async with wired(postgres, postgres_url, tmp_path) as (wire, database):
        await asyncio.gather(*(tell(database, f"before {n}") for n in range(4)))
        assert await database.ready()
        await wire.cut()
        assert not await database.ready()
        with pytest.raises(StoreError):
            await tell(database, "lost")
        await wire.mend()
        assert await database.ready()
        await tell(database, "after")
        asked = await database.read(lambda c: list(c.execute(sa.select(turns.c.asked)).scalars()))
        assert sorted(asked) == ["after", *(f"before {n}" for n in range(4))]


async def test_database_that_is_silent_is_not_ready_and_not_waited_for(
    postgres: Postgres, postgres_url: str, tmp_path: Path
) -> None:
    async with wired(postgres, postgres_url, tmp_path) as (wire, database):
        wire.flowing.clear()
        assert not await database.ready(within_s=0.1)
        wire.flowing.set()
        assert await database.ready()


# ---------------------------------------------------------------- several servers


async def test_turns_that_two_servers_write_at_once_are_all_there_once(
    postgres_url: str, tmp_path: Path
) -> None:
    one, other = [await Database.open(postgres_url, tmp_path) for _ in range(2)]
    await asyncio.gather(
        *(tell(database, f"{name} {n}") for n in range(30) for name, database in (("a", one), ("b", other)))
    )
    rows = await one.read(lambda c: c.execute(sa.select(turns.c.n, turns.c.asked)).all())
    assert sorted(row.n for row in rows) == list(range(1, 61))
    assert {row.asked for row in rows} == {f"{name} {n}" for n in range(30) for name in "ab"}
    (last,) = await other.read(lambda c: list(c.execute(sa.select(conversations.c.last_n)).scalars()))
    assert last == 60
    await one.close()
    await other.close()


async def test_what_a_writer_has_read_holds_until_it_has_written(postgres_url: str, tmp_path: Path) -> None:
    """Reading, deciding and writing in one transaction is what all of the code relies on."""
    one, other = [await Database.open(postgres_url, tmp_path) for _ in range(2)]
    await one.write(lambda c: put(c, "shop", "0"))

    def count(c: sa.Connection) -> None:
        number = int(c.execute(sa.select(sites.c.access)).scalar_one())
        c.execute(sa.update(sites).values(access=str(number + 1)))

    await asyncio.gather(*(database.write(count) for _ in range(20) for database in (one, other)))
    assert await one.read(lambda c: c.execute(sa.select(sites.c.access)).scalar_one()) == "40"
    await one.close()
    await other.close()


@pytest.mark.both_databases
async def test_pages_of_documents_hold_each_once_however_the_database_sorts(database: Database) -> None:
    documents = Documents(database)
    ids = ["a", "A", "a-b", "a_b", "ab", "a.c", "B", "b", "~", "-", "1", "01", "Z9"]
    loaded = [Document("shop", one, "v", "", one, ("Thing",), "", b"{}", "", 0) for one in ids]
    await documents.announce([(one.key, [Chunk(0, "text", 0, 4)]) for one in loaded])
    await documents.publish(loaded)
    seen: list[str] = []
    after = ("", "")
    while page := await documents.documents(EVERYTHING, None, after=after, limit=2):
        seen += [one.document_id for one in page]
        after = (page[-1].site, page[-1].document_id)
    assert sorted(seen) == sorted(ids)


@pytest.mark.both_databases
async def test_load_that_another_server_swept_is_not_made_live(database: Database) -> None:
    """A server that starts, or loads the same site, takes what is announced for left by a kill."""
    documents = Documents(database)
    new = Document("shop", "one", "v1", "", "One", ("Thing",), "", b"{}", "", 1)
    await documents.announce([(new.key, [Chunk(0, "text", 0, 4)])])
    await documents.swept(await documents.stale())
    with pytest.raises(StoreError, match="load again"):
        await documents.publish([new])
    assert await documents.documents(EVERYTHING, None) == []
    # Its points may be there by now: they are to be swept.
    assert await documents.stale() == [new.key]
    await documents.announce([(new.key, [Chunk(0, "text", 0, 4)])])
    assert await documents.publish([new]) == []
    assert await documents.text(EVERYTHING, new.key) == "text"
    assert await documents.publish([new]) == []


async def test_many_turns_of_one_conversation_use_up_one_id(database: Database) -> None:
    for n in range(5):
        await tell(database, str(n))
    await database.write(lambda c: add_turn(c, ANNA.key, "other", a_turn("x"), "x", LIMITS))
    ids = await database.read(lambda c: sorted(c.execute(sa.select(conversations.c.id)).scalars()))
    assert ids == [1, 2]


# ---------------------------------------------------------------- values


@pytest.mark.both_databases
async def test_values_come_back_as_they_went(database: Database) -> None:
    text = "naïve 한국어 😀 \\ % _ ' \" \u2028 \x01"
    row = {
        "owner": text,
        "conversation_id": "c",
        "title": text,
        "last_n": 2**31 - 1,
        "created_at": 1_800_000_000.123456,
        "used_at": 1e-9,
        "board": [{"text": text, "nul": "\x00", "n": 2**60, "deep": [None, True, 0.1]}],
        "board_seen": 0,
        "board_next": 1,
    }
    await database.write(lambda c: c.execute(sa.insert(conversations).values(**row)).close())
    found = await database.read(lambda c: dict(c.execute(sa.select(conversations)).mappings().one()))
    assert found == {"id": 1, **row}


@pytest.mark.both_databases
async def test_bytes_come_back_as_they_went(database: Database) -> None:
    item = bytes(range(256))
    row = dict.fromkeys(("site", "document_id", "version", "url", "host", "name", "language", "file"), "x")
    values = {**row, "types": ["A"], "item": item, "chunks": 1, "updated_at": 1.0}
    await database.write(lambda c: upsert(c, documents, ["site", "document_id"], **values))
    await database.write(lambda c: upsert(c, documents, ["site", "document_id"], **{**values, "name": "y"}))
    found = await database.read(lambda c: c.execute(sa.select(documents)).one())
    assert (found.item, found.name, found.types) == (item, "y", ["A"])
    assert type(found.item) is bytes


@pytest.mark.both_databases
@pytest.mark.parametrize("number", [2**31, 2**63, 10**30])
async def test_number_that_is_too_big_is_the_callers_mistake_if_anybodys(
    database: Database, database_url: str | None, number: int
) -> None:
    def look(c: sa.Connection) -> list[int]:
        return list(c.execute(sa.select(conversations.c.id).where(conversations.c.id < number)).scalars())

    if database_url is None and number < 2**63:
        assert await database.read(look) == []
        return
    with pytest.raises(BadQuery, match="none that the database can hold"):
        await database.read(look)


@pytest.mark.both_databases
@pytest.mark.parametrize("text", ["a\x00b", "a\ud800b"])
async def test_text_that_no_database_holds_is_no_failure_of_the_database(
    database: Database, database_url: str | None, text: str
) -> None:
    if database_url is None and "\x00" in text:
        assert await database.write(lambda c: put(c, text))
        return
    with pytest.raises(BadQuery, match="none that the database can hold") as refused:
        await database.write(lambda c: put(c, text))
    assert refused.value.__cause__ is None
    assert await database.write(lambda c: put(c, "fine"))


@pytest.mark.both_databases
async def test_row_that_is_there_is_not_inserted_again(database: Database) -> None:
    assert await database.write(lambda c: put(c, "shop", "public"))
    assert not await database.write(lambda c: put(c, "shop", "private"))
    access = await database.read(lambda c: c.execute(sa.select(sites.c.access)).scalar_one())
    assert access == "public"


async def test_failure_does_not_repeat_the_values(
    postgres_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database = await Database.open(postgres_url, tmp_path)
    secret = {"name": "a-secret-name", "access": "public", "created_at": 1.0}
    await database.write(lambda c: c.execute(sa.insert(sites).values(**secret)).close())
    with pytest.raises(StoreError) as failed:
        await database.write(lambda c: c.execute(sa.insert(sites).values(**secret)).close())
    (logged,) = [record for record in caplog.records if record.message == "database.failed"]
    # The log says what it was, and whoever asks that it was.
    assert "duplicate key" in logged.__dict__["reason"]
    assert "duplicate key" not in str(failed.value)
    assert "a-secret-name" not in f"{failed.value} {logged.__dict__}"
    await database.close()


# ---------------------------------------------------------------- what is erased


@pytest.mark.both_databases
async def test_nothing_of_a_deleted_row_is_left_in_the_files(
    database: Database, database_bytes: Callable[[], bytes]
) -> None:
    """A long text too: PostgreSQL keeps those in a table of their own."""
    long = " ".join(f"zebra{secrets.token_hex(8)}" for _ in range(4000))
    turn = replace(a_turn("a zebra"), answer=long)
    await database.write(lambda c: add_turn(c, ANNA.key, "c", turn, "zebra", LIMITS))
    await tell(database, "kept giraffe")
    assert b"zebra" in database_bytes()
    await database.write(lambda c: c.execute(sa.delete(turns).where(turns.c.asked == "a zebra")).close())
    await database.write(lambda c: c.execute(sa.update(conversations).values(title="")).close())
    await database.tidy()
    assert b"zebra" not in database_bytes()
    assert b"giraffe" in database_bytes()


@pytest.fixture
async def watched(tmp_path: Path) -> AsyncIterator[tuple[Database, sqlite3.Connection]]:
    """A database with something deleted, and another process's transaction that still reads it."""
    database = await Database.open(None, tmp_path)
    await tell(database, "a zebra")
    reader = sqlite3.connect(tmp_path / "askable.db", isolation_level=None)
    reader.execute("BEGIN")
    assert len(reader.execute("SELECT * FROM turns").fetchall()) == 1
    await database.write(lambda c: c.execute(sa.delete(conversations)).close())
    yield database, reader
    reader.close()
    await database.close()


async def test_a_reader_of_sqlite_that_stays_holds_up_neither_tidying_nor_writers(
    watched: tuple[Database, sqlite3.Connection],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    database, _ = watched
    async with asyncio.timeout(WAIT_S):
        await database.tidy()
    assert "database.not_tidied" in caplog.text
    assert database.untidy
    # Between two tries others write.
    monkeypatch.setattr("core.database.TIDY_PAUSES_S", (10 * WAIT_S,))
    tidying = asyncio.create_task(database.tidy())
    await asyncio.sleep(0)
    async with asyncio.timeout(WAIT_S):
        await tell(database, "kept")
    assert not tidying.done()
    tidying.cancel()
    # A writer beside another process's waits as long as ever.
    waits = await asyncio.gather(
        *(database.read(lambda c: c.exec_driver_sql("PRAGMA busy_timeout").scalar()) for _ in range(8))
    )
    assert set(waits) == {30_000}


@pytest.mark.parametrize("how", ["tidy", "close"])
async def test_what_could_not_be_tidied_is_tidied_later(
    watched: tuple[Database, sqlite3.Connection],
    database_bytes: Callable[[], bytes],
    monkeypatch: pytest.MonkeyPatch,
    how: str,
) -> None:
    monkeypatch.setattr("core.database.TIDY_PAUSES_S", (0.0,))
    database, reader = watched
    await database.tidy()
    assert b"zebra" in database_bytes()
    reader.execute("COMMIT")  # and its connection stays: SQLite empties no log then by itself
    await (database.tidy() if how == "tidy" else database.close())
    assert b"zebra" not in database_bytes()
    assert not database.untidy


async def test_tidying_waits_for_no_reader_that_stays(
    postgres_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database = await Database.open(postgres_url, tmp_path)
    await tell(database, "kept")
    with psycopg.connect(postgres_url) as reader:
        reader.execute("SELECT * FROM turns").fetchall()  # and its transaction stays open
        await database.tidy()
        assert len(await database.read(lambda c: c.execute(sa.select(turns)).all())) == 1
    assert "database.not_tidied" in caplog.text
    await database.close()


def test_every_table_of_what_people_say_is_tidied() -> None:
    content = {"sites", "documents", "chunks", "stale_versions"}
    untold = {table.name for table in metadata.sorted_tables if not table.info.get("personal")}
    assert untold <= content | TEXTLESS
