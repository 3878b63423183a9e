"""Feedback on answers, and an index of documents' names for suggestions."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "feedback",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("query_id", sa.Text, nullable=False),
        sa.Column("caller", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False, index=True),
        sa.Column("site", sa.Text, nullable=False),
        sa.Column("document_id", sa.Text, nullable=False),
        sa.Column("rating", sa.Text, nullable=False),
        sa.Column("reasons", sa.JSON, nullable=False),
        sa.Column("comment", sa.Text, nullable=False),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("sites", sa.JSON, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.UniqueConstraint("query_id", "caller", "site", "document_id"),
    )
    op.create_index("documents_names", "documents", ["site", "name"])


def downgrade() -> None:
    op.drop_index("documents_names", "documents")
    op.drop_table("feedback")
