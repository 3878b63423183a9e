"""Conversations with their turns, messages and whiteboards."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def _conversation() -> sa.Column[int]:
    reference = sa.ForeignKey("conversations.id", ondelete="CASCADE")
    return sa.Column("conversation", sa.Integer, reference, primary_key=True)


def upgrade() -> None:
    op.create_table(
        "conversations",
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
    op.create_table(
        "turns",
        _conversation(),
        sa.Column("n", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("query_id", sa.Text, nullable=False),
        sa.Column("asked", sa.Text, nullable=False),
        sa.Column("searched", sa.Text, nullable=False),
        sa.Column("shown", sa.JSON, nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
        sa.Column("sites", sa.JSON, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
    )
    op.create_table(
        "messages",
        _conversation(),
        sa.Column("n", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("sites", sa.JSON, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
    )
    op.create_table(
        "seen_messages",
        _conversation(),
        sa.Column("message_id", sa.Text, primary_key=True),
    )


def downgrade() -> None:
    for table in ("seen_messages", "messages", "turns", "conversations"):
        op.drop_table(table)
