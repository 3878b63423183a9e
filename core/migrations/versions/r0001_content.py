"""Sites, documents, their chunks, and versions that must leave the vector store."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "sites",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("access", sa.Text, nullable=False, server_default="public"),
        sa.Column("created_at", sa.Float, nullable=False),
    )
    op.create_table(
        "documents",
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
    op.create_table(
        "chunks",
        sa.Column("site", sa.Text, primary_key=True),
        sa.Column("document_id", sa.Text, primary_key=True),
        sa.Column("version", sa.Text, primary_key=True),
        sa.Column("n", sa.Integer, primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("start", sa.Integer, nullable=False),
        sa.Column("end", sa.Integer, nullable=False),
    )
    op.create_table(
        "stale_versions",
        sa.Column("site", sa.Text, primary_key=True),
        sa.Column("document_id", sa.Text, primary_key=True),
        sa.Column("version", sa.Text, primary_key=True),
    )


def downgrade() -> None:
    for table in ("stale_versions", "chunks", "documents", "sites"):
        op.drop_table(table)
