"""Long-term memory: facts and their history."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "memories",
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
        sa.Column("indexed", sa.Integer, nullable=False),
    )
    op.create_index("memories_of", "memories", ["realm", "user_id", "status"])
    op.create_index(
        "memories_once",
        "memories",
        ["realm", "user_id", "scope", "bound_to", "digest"],
        unique=True,
        sqlite_where=sa.text("status = 'active'"),
        postgresql_where=sa.text("status = 'active'"),
    )
    op.create_table(
        "memory_history",
        sa.Column("n", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("memory_id", sa.Text, nullable=False),
        sa.Column("realm", sa.Text, nullable=False),
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("event", sa.Text, nullable=False),
        sa.Column("old_text", sa.Text),
        sa.Column("new_text", sa.Text),
        sa.Column("at", sa.Float, nullable=False),
    )
    op.create_index("ix_memory_history_memory_id", "memory_history", ["memory_id"])
    op.create_index("memory_history_of", "memory_history", ["realm", "user_id"])


def downgrade() -> None:
    for table in ("memory_history", "memories"):
        op.drop_table(table)
