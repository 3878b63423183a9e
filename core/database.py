"""The relational store: SQLite, or PostgreSQL for several servers, by SQLAlchemy Core; migrated at start.

The database is the truth and the vector store an index beside it: a search hit counts only if its version is
the one that stands in `documents`, so a reader sees a document's old or new text and never a mixture.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import event, exc
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry

from core.errors import BadQuery, ConfigError, StoreError

log = logging.getLogger(__name__)

T = TypeVar("T")

READERS = 4
READY_S = 3.0
TIDY_PAUSES_S = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
# How long a try to empty SQLite's log waits for those who read: this server's own are done by then.
TIDY_WAIT_MS = 50
# A table is locked while PostgreSQL writes it anew: about a second for this much.
REWRITTEN_BYTES = 200 * 1024 * 1024

# Where a URL says nothing else. A server that went silent (no reset, no answer) is given up after half a
# minute; statements are not prepared, as poolers between us and the server do not know of them.
POSTGRES_OPTIONS: Mapping[str, object] = {
    "application_name": "askable",
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "prepare_threshold": None,
}
# One writer at a time, whichever server it is in: what a transaction has read holds until it is committed, as
# with SQLite. The lock ends with the transaction, and a process that freezes in one is thrown out of it. The
# number ("ASKA") is ours alone.
WRITERS = 0x41534B41
TAKE_TURN = (
    "SELECT set_config('lock_timeout', '30s', true),"
    " set_config('idle_in_transaction_session_timeout', '60s', true),"
    f" pg_advisory_xact_lock({WRITERS})"
)

metadata = sa.MetaData()
# `info` of a table that holds what people said: what is deleted from it is taken off the disk by `tidy`.
PERSONAL = {"personal": True}

# alembic keeps the migration that runs in a global: two servers of one process take turns.
_migrating = threading.Lock()

sites = sa.Table(
    "sites",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("access", sa.Text, nullable=False, server_default="public"),
    sa.Column("created_at", sa.Float, nullable=False),
)

documents = sa.Table(
    "documents",
    metadata,
    sa.Column("site", sa.Text, primary_key=True),
    sa.Column("document_id", sa.Text, primary_key=True),
    sa.Column("version", sa.Text, nullable=False),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("host", sa.Text, nullable=False, index=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("types", sa.JSON, nullable=False),
    sa.Column("language", sa.Text, nullable=False),
    sa.Column("item", sa.LargeBinary, nullable=False),
    sa.Column("file", sa.Text, nullable=False),
    sa.Column("chunks", sa.Integer, nullable=False),
    sa.Column("updated_at", sa.Float, nullable=False),
    sa.Column("tags", sa.JSON, nullable=False, server_default="[]"),
    # False while the vector store may still have the tags of before: it is brought up to date by `sweep`.
    sa.Column("tags_filed", sa.Boolean, nullable=False, server_default=sa.true()),
)

chunks = sa.Table(
    "chunks",
    metadata,
    sa.Column("site", sa.Text, primary_key=True),
    sa.Column("document_id", sa.Text, primary_key=True),
    sa.Column("version", sa.Text, primary_key=True),
    sa.Column("n", sa.Integer, primary_key=True),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("start", sa.Integer, nullable=False),
    sa.Column("end", sa.Integer, nullable=False),
)

# Versions whose points may be in the vector store and must not stay: written before the points are, and
# taken back in the transaction that makes the version live. What a kill leaves behind is found here.
stale = sa.Table(
    "stale_versions",
    metadata,
    sa.Column("site", sa.Text, primary_key=True),
    sa.Column("document_id", sa.Text, primary_key=True),
    sa.Column("version", sa.Text, primary_key=True),
)

# `last_n` numbers turns and messages alike. The whiteboard is a part of its conversation: `board` as of
# number `board_seen`, `board_next` the next entry's id. Ids are never used again, so that late work for a
# deleted conversation finds nothing to write to.
conversations = sa.Table(
    "conversations",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("conversation_id", sa.Text, nullable=False),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("last_n", sa.Integer, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("used_at", sa.Float, nullable=False, index=True),
    sa.Column("board", sa.JSON, nullable=False),
    sa.Column("board_seen", sa.Integer, nullable=False),
    sa.Column("board_next", sa.Integer, nullable=False),
    sa.UniqueConstraint("owner", "conversation_id"),
    sqlite_autoincrement=True,
    info=PERSONAL,
)

turns = sa.Table(
    "turns",
    metadata,
    sa.Column("conversation", sa.ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("n", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("query_id", sa.Text, nullable=False),
    sa.Column("asked", sa.Text, nullable=False),
    sa.Column("searched", sa.Text, nullable=False),
    sa.Column("shown", sa.JSON, nullable=False),
    sa.Column("answer", sa.Text, nullable=False),
    sa.Column("sites", sa.JSON, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    # Whether `answer` is a question back, so that the next turn's is the answer to it.
    sa.Column("asks", sa.Boolean, nullable=False, server_default=sa.false()),
    # Ids of remembered facts: those that were told in the turn, and those that it may have words of.
    sa.Column("told", sa.JSON, nullable=False, server_default="[]"),
    sa.Column("used", sa.JSON, nullable=False, server_default="[]"),
    info=PERSONAL,
)

# What agents said in a conversation (`POST /context`). `used`: ids of the facts that the agent was given
# after this message, so that what it says from then on may have words of them.
messages = sa.Table(
    "messages",
    metadata,
    sa.Column("conversation", sa.ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("n", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("content", sa.Text, nullable=False),
    sa.Column("sites", sa.JSON, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("used", sa.JSON, nullable=False, server_default="[]"),
    info=PERSONAL,
)

# Ids outlive their messages: an agent sends its whole history every time.
seen_messages = sa.Table(
    "seen_messages",
    metadata,
    sa.Column("conversation", sa.ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("message_id", sa.Text, primary_key=True),
    info=PERSONAL,
)


class Database:
    """Runs functions of a connection in transactions, off the event loop.

    Writers queue behind one lock (SQLite has one writer); on PostgreSQL, those of all servers do. Readers run
    beside them.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._threads = ThreadPoolExecutor(max_workers=READERS, thread_name_prefix="database")
        self._writing = asyncio.Lock()
        # Whether something that was deleted may still be in the files: set by who deletes what people said,
        # looked at by the upkeep. At the start a stop may have come between. (PostgreSQL's tables are not all
        # written anew at each start.)
        self.untidy = engine.dialect.name == "sqlite"

    @classmethod
    async def open(cls, url: str | None, data_dir: Path) -> Database:
        """Connect and migrate. Raises ConfigError for an address that is not one, StoreError if it fails."""
        engine = make_engine(url, data_dir)
        try:
            await asyncio.to_thread(migrate, engine)
        except CommandError:
            engine.dispose()
            raise StoreError("the database was written by a newer version of askable") from None
        except exc.SQLAlchemyError as failed:
            engine.dispose()
            raise StoreError(f"the database does not open: {_reason(failed)}") from None
        return cls(engine)

    async def read(self, work: Callable[[Connection], T]) -> T:
        """`work`'s value, in a transaction that is rolled back. Raises StoreError, and BadQuery for a value
        that the database cannot hold (a NUL in a text, a number of too many digits)."""
        return await self._run(work, commit=False)

    async def write(self, work: Callable[[Connection], T]) -> T:
        """`work`'s value, committed when this returns; also if the caller is cancelled meanwhile. Raises as
        `read`."""
        async with self._writing:
            return await asyncio.shield(self._run(work, commit=True))

    async def ready(self, within_s: float = READY_S) -> bool:
        """Whether it answers now; never raises."""
        try:
            async with asyncio.timeout(within_s):
                await self.read(lambda c: c.execute(sa.select(1)).close())
        except (StoreError, TimeoutError):
            return False
        return True

    async def tidy(self) -> None:
        """After something was erased: leave nothing of it in the database's files. (PostgreSQL's log is its
        operator's.) A reader that looks on for longer than about two seconds is not waited for, and nobody
        who writes waits for it: then it is `untidy` until this is called again, or it is closed."""
        self.untidy = True
        for pause_s in TIDY_PAUSES_S:
            if await self._tidied():
                return
            await asyncio.sleep(pause_s)  # a reader still looks at what is to go
        log.warning("database.not_tidied", extra={"reason": "somebody reads what is to go"})
        if self._engine.dialect.name != "sqlite":
            async with self._writing:
                await self._in_thread(self._vacuum)

    async def _tidied(self) -> bool:
        async with self._writing:
            # What others delete meanwhile waits for the lock, and says so again.
            self.untidy = not await self._in_thread(
                self._empty_log if self._engine.dialect.name == "sqlite" else self._rewrite
            )
        return not self.untidy

    def _empty_log(self) -> bool:
        """SQLite overwrites in the file what is deleted (`secure_delete`); the log beside it is emptied here.
        Whether it was: not while another looks at what is in it, be it another process."""
        with self._engine.connect() as connection:
            patience = connection.exec_driver_sql("PRAGMA busy_timeout").scalar()
            connection.exec_driver_sql(f"PRAGMA busy_timeout={TIDY_WAIT_MS}").close()
            try:
                return not connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").scalar()
            finally:
                connection.exec_driver_sql(f"PRAGMA busy_timeout={patience}").close()

    def _rewrite(self) -> bool:
        """PostgreSQL's plain VACUUM forgets deleted rows but leaves their bytes on the pages: the tables are
        written anew, big ones excepted. Whether all were, as one that is in use is left."""
        file_and_size = sa.text("SELECT pg_relation_filenode(:name), pg_total_relation_size(:name)")
        done = True
        with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            for name in _personal():
                before, size = connection.execute(file_and_size, {"name": name}).one()
                if size > REWRITTEN_BYTES:
                    connection.exec_driver_sql(f"VACUUM {name}")
                    continue
                connection.exec_driver_sql(f"VACUUM (FULL, SKIP_LOCKED) {name}")
                done &= connection.execute(file_and_size, {"name": name}).one()[0] != before
        return done

    def _vacuum(self) -> None:
        with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            for name in _personal():
                connection.exec_driver_sql(f"VACUUM {name}")

    async def close(self) -> None:
        """Finish what was begun, and try once more to leave nothing of what was deleted."""
        if self.untidy:
            with suppress(StoreError):  # it is logged, and the next start tries again
                await self._tidied()
        async with self._writing:
            await asyncio.to_thread(self._threads.shutdown)
            self._engine.dispose()

    async def _run(self, work: Callable[[Connection], T], *, commit: bool) -> T:
        def transaction() -> T:
            with self._engine.connect() as connection:
                if commit and connection.dialect.name == "postgresql":
                    connection.exec_driver_sql(TAKE_TURN).close()
                value = work(connection)
                if commit:
                    connection.commit()
                return value

        return await self._in_thread(transaction)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except (exc.DataError, OverflowError, UnicodeEncodeError):
            raise BadQuery("a value is none that the database can hold") from None
        except exc.SQLAlchemyError as failed:
            # Its own text, and the driver's, repeat values: neither is to be in a log. Where the database is,
            # which the driver says, is nothing for whoever asks.
            log.error("database.failed", extra={"reason": _reason(failed)})
            raise StoreError("the database failed or does not answer; the log says why") from None


def insert(connection: Connection, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
    """An INSERT that knows ON CONFLICT, in the connection's own dialect."""
    return (postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert)(table)


def insert_missing(connection: Connection, table: sa.Table, **values: object) -> bool:
    """Insert the row unless its key is there already; whether it was inserted."""
    new = insert(connection, table).values(**values).on_conflict_do_nothing()
    return connection.execute(new.returning(*table.primary_key.columns)).first() is not None


def upsert(connection: Connection, table: sa.Table, key: Sequence[str], **values: object) -> None:
    """Insert the row, or give the one with the same `key` these values."""
    new = insert(connection, table).values(**values)
    changed = {name: value for name, value in values.items() if name not in key}
    connection.execute(new.on_conflict_do_update(index_elements=list(key), set_=changed))


def make_engine(url: str | None, data_dir: Path) -> Engine:
    """An engine for `url`, or for `data_dir/askable.db`. Raises ConfigError, which never repeats the URL, as
    that may hold a password."""
    if url is None:
        data_dir.mkdir(parents=True, exist_ok=True)
        return _sqlite(sa.make_url(f"sqlite:///{data_dir / 'askable.db'}"))
    try:
        parsed = sa.make_url(url)
    except (exc.ArgumentError, ValueError):
        raise ConfigError("`database.url` is not a database address") from None
    if parsed.drivername in ("sqlite", "sqlite+pysqlite"):
        return _sqlite(parsed)
    # Hosting services write `postgres://`.
    if parsed.drivername in ("postgres", "postgresql", "postgresql+psycopg"):
        return _postgresql(parsed)
    raise ConfigError(
        f"`database.url`: {parsed.drivername} is not supported; it is postgresql://USER:PASSWORD@HOST/DATABASE,"
        " or unset for SQLite in the data folder"
    )


def _sqlite(url: sa.URL) -> Engine:
    engine = sa.create_engine(
        url, hide_parameters=True, connect_args={"check_same_thread": False, "timeout": 30}
    )
    event.listen(engine, "connect", _tune_sqlite)
    return engine


def _postgresql(url: sa.URL) -> Engine:
    if "@" in (url.host or ""):
        raise ConfigError("`database.url`: write an @ in the password as %40")
    engine = sa.create_engine(
        url.set(drivername="postgresql+psycopg"),
        connect_args={name: value for name, value in POSTGRES_OPTIONS.items() if name not in url.query},
        hide_parameters=True,
        pool_size=READERS,
        max_overflow=0,
        # A connection that the server, or something between, has closed meanwhile is replaced and not used.
        pool_pre_ping=True,
        pool_recycle=1800,
    )
    event.listen(engine, "connect", _check_postgresql)
    return engine


def migrate(engine: Engine) -> None:
    """Bring the schema to the newest revision; a fresh database gets all of it."""
    with _migrating:
        _migrate(engine)


def _migrate(engine: Engine) -> None:
    config = Config()
    config.set_main_option("script_location", "core:migrations")
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            # Servers that start together migrate one after the other, and beside no writer.
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(WRITERS)))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _tune_sqlite(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    cursor = connection.cursor()
    # WAL: readers beside the writer. NORMAL: a killed process loses nothing, a power cut perhaps the last
    # transactions. secure_delete: what is deleted is overwritten in the file.
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON", "secure_delete=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _check_postgresql(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise ConfigError(f"`database.url`: the database's encoding is {encoding}; create one with UTF8")


def _personal() -> list[str]:
    return [table.name for table in metadata.sorted_tables if table.info.get("personal")]


def _reason(failed: exc.SQLAlchemyError) -> str:
    """The driver's sentence alone, in a line: SQLAlchemy's own text repeats statements with their values, and
    PostgreSQL's DETAIL repeats values."""
    told = str(getattr(failed, "orig", None) or type(failed).__name__)
    return " ".join(told.split("\nDETAIL:")[0].split())
