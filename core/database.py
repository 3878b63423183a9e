"""The relational store of what is loaded and live: SQLite, through SQLAlchemy Core; migrated at start.

The database is the truth and the vector store an index beside it: a search hit counts only if its version is
the one that stands in `documents`, so a reader sees a document's old or new text and never a mixture.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy import event, exc
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry

from core.errors import ConfigError, StoreError

T = TypeVar("T")

READERS = 4
TIDY_PAUSES_S = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)

metadata = sa.MetaData()

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
)

# What agents said in a conversation (`POST /context`).
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
)

# Ids outlive their messages: an agent sends its whole history every time.
seen_messages = sa.Table(
    "seen_messages",
    metadata,
    sa.Column("conversation", sa.ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("message_id", sa.Text, primary_key=True),
)


class Database:
    """Runs functions of a connection in transactions, off the event loop.

    Writers queue behind one lock (SQLite has one writer); readers run beside them.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._threads = ThreadPoolExecutor(max_workers=READERS, thread_name_prefix="database")
        self._writing = asyncio.Lock()

    @classmethod
    async def open(cls, url: str | None, data_dir: Path) -> Database:
        """Connect and migrate. Raises ConfigError for an address that is not one, StoreError if it fails."""
        engine = make_engine(url, data_dir)
        try:
            await asyncio.to_thread(migrate, engine)
        except exc.SQLAlchemyError as failed:
            engine.dispose()
            raise StoreError(f"the database does not open: {_reason(failed)}") from None
        return cls(engine)

    async def read(self, work: Callable[[Connection], T]) -> T:
        """`work`'s value, in a transaction that is rolled back. Raises StoreError."""
        return await self._run(work, commit=False)

    async def write(self, work: Callable[[Connection], T]) -> T:
        """`work`'s value, committed when this returns; also if the caller is cancelled meanwhile."""
        async with self._writing:
            return await asyncio.shield(self._run(work, commit=True))

    async def ready(self) -> bool:
        """Whether it answers now; never raises."""
        try:
            await self.read(lambda c: c.execute(sa.select(1)))
        except StoreError:
            return False
        return True

    async def tidy(self) -> None:
        """After something was erased: leave nothing of it in SQLite's log beside the file. (In the file
        itself what is deleted is overwritten; PostgreSQL's own VACUUM does both.)"""
        if self._engine.dialect.name != "sqlite":
            return
        statement = "PRAGMA wal_checkpoint(TRUNCATE)"
        async with self._writing:
            for pause_s in TIDY_PAUSES_S:
                busy = await self._run(lambda c: c.exec_driver_sql(statement).scalar(), commit=False)
                if not busy:
                    return
                await asyncio.sleep(pause_s)  # a reader still looks at the log

    async def close(self) -> None:
        async with self._writing:
            await asyncio.to_thread(self._threads.shutdown)
            self._engine.dispose()

    async def _run(self, work: Callable[[Connection], T], *, commit: bool) -> T:
        def in_thread() -> T:
            with self._engine.connect() as connection:
                value = work(connection)
                if commit:
                    connection.commit()
                return value

        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, in_thread)
        except exc.SQLAlchemyError as failed:
            raise StoreError(f"the database failed: {_reason(failed)}") from failed


def insert_missing(connection: Connection, table: sa.Table, **values: object) -> bool:
    """Insert the row unless its key is there already; whether it was inserted."""
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    new = insert(table).values(**values).on_conflict_do_nothing().returning(*table.primary_key.columns)
    return connection.execute(new).first() is not None


def make_engine(url: str | None, data_dir: Path) -> Engine:
    """An engine for `url`, or for `data_dir/askable.db`."""
    if url is None:
        data_dir.mkdir(parents=True, exist_ok=True)
        url = f"sqlite:///{data_dir / 'askable.db'}"
    try:
        parsed = sa.make_url(url)
        if parsed.get_backend_name() != "sqlite":
            raise ConfigError(
                f"`database.url`: {parsed.get_backend_name()} is not supported yet; leave it unset"
            )
        engine = sa.create_engine(parsed, connect_args={"check_same_thread": False, "timeout": 30})
    except exc.ArgumentError:
        # The address may hold a password: it is not repeated.
        raise ConfigError("`database.url` is not a database address") from None
    event.listen(engine, "connect", _tune_sqlite)
    return engine


def migrate(engine: Engine) -> None:
    """Bring the schema to the newest revision; a fresh database gets all of it."""
    with _migrating:
        _migrate(engine)


def _migrate(engine: Engine) -> None:
    config = Config()
    config.set_main_option("script_location", "core:migrations")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _tune_sqlite(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    cursor = connection.cursor()
    # WAL: readers beside the writer. NORMAL: a killed process loses nothing, a power cut perhaps the last
    # transactions. secure_delete: what is deleted is overwritten in the file.
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON", "secure_delete=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _reason(failed: exc.SQLAlchemyError) -> str:
    """The driver's sentence alone: SQLAlchemy's own text repeats statements with their values."""
    return str(getattr(failed, "orig", None) or type(failed).__name__)
