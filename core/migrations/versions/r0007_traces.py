"""Which remembered facts each turn, and what agents said, was made with."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table, column in (("turns", "told"), ("turns", "used"), ("messages", "used")):
        op.add_column(table, sa.Column(column, sa.JSON, nullable=False, server_default="[]"))


def downgrade() -> None:
    for table, columns in (("messages", ("used",)), ("turns", ("used", "told"))):
        with op.batch_alter_table(table) as changed:
            for column in columns:
                changed.drop_column(column)
