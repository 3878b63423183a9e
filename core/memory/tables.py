"""The tables of long-term memory: facts and what happened to them, what was agreed to, who was erased."""

from __future__ import annotations

import sqlalchemy as sa

from core.database import PERSONAL, metadata

facts = sa.Table(
    "memories",
    metadata,
    sa.Column("memory_id", sa.Text, primary_key=True),
    sa.Column("realm", sa.Text, nullable=False),
    sa.Column("user_id", sa.Text, nullable=False),
    sa.Column("application", sa.Text, nullable=False),
    sa.Column("agent", sa.Text, nullable=False),
    sa.Column("thread", sa.Text, nullable=False),
    sa.Column("scope", sa.Text, nullable=False),
    sa.Column("bound_to", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("attribute", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("superseded_by", sa.Text),
    sa.Column("query_id", sa.Text, nullable=False),
    sa.Column("source_turn", sa.Text, nullable=False),
    sa.Column("metadata", sa.JSON, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("updated_at", sa.Float, nullable=False),
    sa.Column("expires_at", sa.Float),
    # Whether the vector store has the point: what a kill left undone is found by this.
    sa.Column("indexed", sa.Integer, nullable=False),
    sa.Index("memories_of", "realm", "user_id", "status"),
    # One fact is there once, whoever writes it at the same moment.
    sa.Index(
        "memories_once",
        "realm",
        "user_id",
        "scope",
        "bound_to",
        "digest",
        unique=True,
        sqlite_where=sa.text("status = 'active'"),
        postgresql_where=sa.text("status = 'active'"),
    ),
    info=PERSONAL,
)

history = sa.Table(
    "memory_history",
    metadata,
    sa.Column("n", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("memory_id", sa.Text, nullable=False, index=True),
    sa.Column("realm", sa.Text, nullable=False),
    sa.Column("user_id", sa.Text, nullable=False),
    sa.Column("event", sa.Text, nullable=False),
    sa.Column("old_text", sa.Text),
    sa.Column("new_text", sa.Text),
    sa.Column("at", sa.Float, nullable=False),
    sa.Index("memory_history_of", "realm", "user_id"),
    info=PERSONAL,
)

# Confirmations that were used, by a digest of their token, until they would be too old anyway. `done` 0: it
# was begun; the same person (`by`, a digest) may go on with what a kill interrupted.
confirmations = sa.Table(
    "memory_confirmations",
    metadata,
    sa.Column("digest", sa.Text, primary_key=True),
    sa.Column("by", sa.Text, nullable=False),
    sa.Column("done", sa.Integer, nullable=False),
    sa.Column("expires_at", sa.Float, nullable=False, index=True),
)

# The erasures that this database has been through, by the number they have in the ledger. `owner` is a keyed
# digest; `left` names the parts that have yet to be erased, null where nothing is known to be done.
erasures = sa.Table(
    "erasures",
    metadata,
    sa.Column("number", sa.Text, primary_key=True),
    sa.Column("owner", sa.Text, nullable=False, index=True),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("left", sa.JSON(none_as_null=True)),
)
