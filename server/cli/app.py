"""The command group: global options, errors as one line, exit 0 ok, 1 failed, 2 wrong usage."""

from __future__ import annotations

import asyncio
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from core.errors import AskError, BadQuery, ConfigError
from server.cli.context import Context

# A verb is imported when it is called: `--help` must not wait for the parts of a server.
VERBS = ("serve", "load", "ask", "search", "sites", "documents", "delete", "prompts", "mcp", "memory")


class Group(click.Group):
    """Finds verbs by name, and turns errors of ours into a line on stderr and the right exit code."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command: click.Command = import_module(f"server.cli.{cmd_name}").command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (ConfigError, BadQuery) as wrong:
            click.echo(f"askable: {wrong.message}", err=True)
            sys.exit(2)
        except AskError as failed:
            click.echo(f"askable: {failed.message}", err=True)
            sys.exit(2 if failed.code == BadQuery.code else 1)
        except (KeyboardInterrupt, asyncio.CancelledError):
            click.echo("askable: stopped", err=True)
            sys.exit(130)


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="askable", prog_name="askable")
@click.option("--config", type=click.Path(path_type=Path), help="Settings file (default: ./askable.toml).")
@click.option("--data-dir", type=click.Path(path_type=Path), help="Folder that holds everything stored.")
@click.pass_context
def cli(ctx: click.Context, config: Path | None, data_dir: Path | None) -> None:
    """Make a website askable.

    Example: askable serve --demo
    """
    ctx.obj = Context(config, data_dir)


def main() -> None:
    """The console script."""
    cli(prog_name="askable")
