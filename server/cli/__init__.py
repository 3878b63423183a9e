"""The `askable` command: one file a verb, thin over the public routes."""

from __future__ import annotations

from server.cli.app import cli, main

__all__ = ["cli", "main"]
