"""`askable mcp`: how agents' programs are told of this server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click
import orjson

from core.settings import Settings
from server.cli.client import SERVER_FILE
from server.cli.context import Context

NAME = "askable"
ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - it is told apart, not listened on


def _claude(url: str, variable: str | None) -> dict[str, Any]:
    """Claude Code: `.mcp.json` in the project."""
    return {"mcpServers": {NAME: {"type": "http", "url": url, **_headers(variable, "${%s}")}}}


def _vscode(url: str, variable: str | None) -> dict[str, Any]:
    """VS Code: `.vscode/mcp.json` in the project."""
    return {"servers": {NAME: {"type": "http", "url": url, **_headers(variable, "${env:%s}")}}}


def _cursor(url: str, variable: str | None) -> dict[str, Any]:
    """Cursor: `.cursor/mcp.json` in the project, or in the home folder."""
    return {"mcpServers": {NAME: {"url": url, **_headers(variable, "${env:%s}")}}}


CLIENTS: Mapping[str, Callable[[str, str | None], dict[str, Any]]] = {
    "claude": _claude,
    "vscode": _vscode,
    "cursor": _cursor,
}


@click.group("mcp")
def command() -> None:
    """Let agents use this server by the Model Context Protocol.

    Example: askable mcp config --client vscode > .vscode/mcp.json
    """


@command.command("config")
@click.option("--client", type=click.Choice(sorted(CLIENTS)), required=True, help="The agents' program.")
@click.option("--url", help="The server's address as that program reaches it (default: the running server).")
@click.option("--key-variable", metavar="NAME", help="Send the key that this environment variable holds.")
@click.option("--json", "_json", is_flag=True, help="It is JSON in any case.")
@click.option("-q", "--quiet", is_flag=True, help="Don't say which file it belongs in.")
@click.pass_obj
def config(
    context: Context, client: str, url: str | None, key_variable: str | None, _json: bool, quiet: bool
) -> None:
    """Print the configuration for a client. The key itself is never in it.

    Example: askable mcp config --client claude --url https://ask.example.org --key-variable ASKABLE_KEY
    """
    address = (url or _address(context.settings())).rstrip("/")
    made = CLIENTS[client](address if address.endswith("/mcp") else f"{address}/mcp", key_variable)
    if not quiet:
        click.echo((CLIENTS[client].__doc__ or "").strip(), err=True)
    click.echo(orjson.dumps(made, option=orjson.OPT_INDENT_2))


def _headers(variable: str | None, form: str) -> dict[str, Any]:
    return {"headers": {"Authorization": f"Bearer {form % variable}"}} if variable else {}


def _address(settings: Settings) -> str:
    """Where the server that has the data folder is; else where one would be."""
    try:
        return str(orjson.loads((settings.data_dir / SERVER_FILE).read_bytes())["url"])
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
        host = settings.server.host
        host = ANY_ADDRESS.get(host, f"[{host}]" if ":" in host else host)
        return f"http://{host}:{settings.server.port}"
