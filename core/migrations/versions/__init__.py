"""Schema revisions, run by alembic."""
