"""Confirmations that were used, and the erasures that this database has been through."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "memory_confirmations",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("done", sa.Integer, nullable=False),
        sa.Column("expires_at", sa.Float, nullable=False),
    )
    op.create_index("ix_memory_confirmations_expires_at", "memory_confirmations", ["expires_at"])
    op.create_table(
        "erasures",
        sa.Column("number", sa.Text, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("left", sa.JSON(none_as_null=True)),
    )
    op.create_index("ix_erasures_owner", "erasures", ["owner"])


def downgrade() -> None:
    for table in ("erasures", "memory_confirmations"):
        op.drop_table(table)
