"""`askable memory`: what is kept of one user, for the operator: see it, forget it, hand it over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click
import orjson

from server.cli.client import connect
from server.cli.context import Context
from server.cli.output import Output, output_options

F = TypeVar("F", bound=Callable[..., Any])


def _whose(function: F) -> F:
    """`--user` and `--realm`."""
    function = click.option(
        "--realm", help="Where the id comes from (key:NAME, jwt:ISSUER), if that is not clear."
    )(function)
    return click.option("--user", required=True, help="The user's id.")(function)


@click.group("memory")
def command() -> None:
    """See, forget or export what is kept of a user.

    Example: askable memory list --user anna
    """


@command.command("list")
@_whose
@output_options
@click.pass_obj
def listed(context: Context, user: str, realm: str | None, quiet: bool) -> None:
    """List a user's facts.

    Example: askable memory list --user anna
    """
    output = Output(quiet=quiet)
    told = _call(context, "GET", "/admin/memory", {**_params(user, realm), "limit": "1000"})
    if output.as_json:
        output.json(told["memories"])
        return
    rows = [
        [_day(one["created_at"]), one["kind"], one["scope"], one["text"], one["memory_id"] or ""]
        for one in told["memories"]
    ]
    output.table(("since", "kind", "scope", "text", "memory_id"), rows)


@command.command("forget")
@_whose
@click.option("--id", "memory_id", help="One fact (askable memory list).")
@click.option("--all", "everything", is_flag=True, help="Everything of this user, conversations too.")
@output_options
@click.pass_obj
def forget(
    context: Context, user: str, realm: str | None, memory_id: str | None, everything: bool, quiet: bool
) -> None:
    """Forget one fact of a user, or everything.

    Example: askable memory forget --user anna --all
    """
    if bool(memory_id) == everything:
        raise click.UsageError("say which: --id ID or --all")
    output = Output(quiet=quiet)
    which = {"all": "true"} if everything else {"id": str(memory_id)}
    told = _call(context, "DELETE", "/admin/memory", {**_params(user, realm), **which})
    if output.as_json:
        output.json(told)
    elif everything:
        counts = [f"{count} {name}" for part in told["erased"].values() for name, count in part.items()]
        output.line("erased: " + ", ".join(counts))
    else:
        output.line(f"forgotten: {len(told['forgotten'])}")


@command.command("export")
@_whose
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), help="A file (default: the terminal)."
)
@output_options
@click.pass_obj
def export(context: Context, user: str, realm: str | None, out: Path | None, quiet: bool) -> None:
    """All that memory has of a user, as JSON.

    Example: askable memory export --user anna --out anna.json
    """
    output = Output(quiet=quiet)
    told = _call(context, "GET", "/admin/memory/export", _params(user, realm))
    if out is None:
        output.json(told)
        return
    out.write_bytes(orjson.dumps(told, option=orjson.OPT_INDENT_2))
    output.note(f"{len(told['memories'])} facts written to {out}")


@command.command("replay-erasures")
@click.option("--since", help="When the backup was made: Unix seconds, or 2026-03-01[T12:00] (UTC).")
@click.option(
    "--ledger",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="The ledger to go by, saved from the data folder that was replaced (default: the server's own).",
)
@output_options
@click.pass_obj
def replay(context: Context, since: str | None, ledger: Path | None, quiet: bool) -> None:
    """After a backup was put back: erase again who was erased since it was made.

    Without --since: everybody of whose erasure the database does not know. With it everybody who was erased
    from then on, with what they have told since.

    Example: askable memory replay-erasures --ledger old-data/erasures.jsonl
    """
    output = Output(quiet=quiet)
    body: dict[str, Any] = {}
    if since is not None:
        body["since"] = _seconds(since)
    if ledger is not None:
        body["ledger"] = ledger.read_text(encoding="utf-8", errors="replace").splitlines()
    told = _call(context, "POST", "/admin/memory/replay-erasures", {}, body=body)
    if output.as_json:
        output.json(told)
    else:
        output.line(f"erased again: {told['erased']}")
    if told["unreadable"]:
        output.note(
            f"{told['unreadable']} lines cannot be read: cut short, or written with another `auth.secret`"
        )
    if told["failed"]:
        output.note(f"of {told['failed']} something is left: the server tries again, its log says why")
    if told["failed"] or told["unreadable"]:
        raise click.exceptions.Exit(1)


def _call(context: Context, method: str, path: str, params: dict[str, str], *, body: object = None) -> Any:
    async def run() -> Any:
        async with connect(context.settings()) as api:
            return await api.json(method, path, params=params, body=body)

    return asyncio.run(run())


def _params(user: str, realm: str | None) -> dict[str, str]:
    return {"user": user, **({"realm": realm} if realm else {})}


def _seconds(since: str) -> float:
    try:
        return float(since)
    except ValueError:
        pass
    try:
        when = datetime.fromisoformat(since)
    except ValueError:
        raise click.UsageError(f"--since: `{since}` is no time: Unix seconds, or 2026-03-01T12:00") from None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()
