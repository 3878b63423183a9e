"""Tags of documents, and whether the vector store has them."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("documents", sa.Column("tags", sa.JSON, nullable=False, server_default="[]"))
    op.add_column("documents", sa.Column("tags_filed", sa.Boolean, nullable=False, server_default=sa.true()))


def downgrade() -> None:
    with op.batch_alter_table("documents") as documents:
        documents.drop_column("tags_filed")
        documents.drop_column("tags")
