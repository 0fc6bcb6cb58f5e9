"""The commands, their options and their exit codes; what they do is in the rooms beside."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import sys
import threading
import traceback
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from judgebias.cli.exits import Exit
from judgebias.cli.plan import print_plan
from judgebias.cli.reparse import reparse as reread_replies
from judgebias.cli.salvage import salvage_run
from judgebias.cli.screen import Screen
from judgebias.cli.status import print_status
from judgebias.cli.summarize import summarize_sources
from judgebias.cli.table import print_summary
from judgebias.errors import JudgebiasError
from judgebias.pipeline.quiet import FAREWELL

app = typer.Typer(
    name="judgebias",
    help="Tells which LLM judges can be believed.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

DISTRIBUTION = "judgebias-batch"
"""The name under which the package is installed."""

Out = Annotated[str, typer.Option("--out", help="Folder for the results.")]
Address = Annotated[
    str, typer.Option("--address", help="Ray cluster: HOST:PORT or auto. Default: a local Ray.")
]
RunFile = Annotated[Path, typer.Argument(metavar="RUN.toml", help="The run file.")]
Limit = Annotated[
    int, typer.Option("--limit", min=0, help="Only a seeded sample of this many pairs.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - Typer gives it by its place
    if not wanted:
        return
    try:
        version = importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        version = "unknown: the package is not installed"
    typer.echo(f"judgebias {version}")
    raise typer.Exit


Version = Annotated[
    bool,
    typer.Option(
        "--version",
        is_eager=True,
        callback=_show_version,
        help="Show the version and exit.",
    ),
]


@app.callback()
def options(*, debug: Debug = False, version: Version = False) -> None:
    """Tell which LLM judges can be believed: both orders, exact tests, at scale on Ray."""


def main() -> None:
    """Run the command line and exit with one of the codes of `Exit`."""
    leave(run_app())


def leave(code: int) -> NoReturn:
    """End the process with this code.

    A farewell to a Ray that is gone would be said again at the end of Python, which after a minute
    ends the process with another code.
    """
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    if any(thread.name == FAREWELL for thread in threading.enumerate()):
        os._exit(code)
    sys.exit(code)


def run_app(arguments: list[str] | None = None) -> int:
    """Run one command; every error is one block on stderr, with a traceback after --debug."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    try:
        result = app(args=[word for word in given if word != "--debug"], standalone_mode=False)
    except JudgebiasError as error:
        if debug:
            traceback.print_exc()
        return _explain(str(error), error.exit_code)
    except typer.Abort:
        return Exit.INTERRUPTED
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except typer.Exit as end:
        return end.exit_code
    except typer.TyperException as error:
        return _explain(error.format_message(), Exit.USAGE)
    except Exception as error:  # noqa: BLE001 - the outermost boundary: what is left is our fault
        if debug:
            traceback.print_exc()
        first_line = str(error).partition("\n")[0]
        message = f"a fault of judgebias: {type(error).__name__}: {first_line}"
        return _explain(f"{message}\n  do: run it with --debug and report it", Exit.OUR_FAULT)
    return int(result or 0)


def _explain(block: str, code: int) -> int:
    sys.stderr.write(f"{block}\n")
    return code


@app.command()
def demo(out: Out = "judgebias-demo", *, json: Json = False) -> int:
    """Judge the bundled pairs with planted judges, and print the table; no key, no network."""
    from judgebias.cli.demo import run_demo

    return run_demo(Path(out), Screen(), as_json=json)


@app.command()
def plan(
    run_file: RunFile,
    *,
    limit: Limit = 0,
    json: Json = False,
) -> int:
    """Read and check the input, count calls, tokens and price; asks nobody, writes nothing."""
    print_plan(run_file, limit=limit, as_json=json)
    return Exit.COMPLETE


@app.command()
def run(
    run_file: RunFile,
    *,
    pairs: Annotated[str, typer.Option("--pairs", help="Pairs instead of the run file's.")] = "",
    out: Out = "",
    limit: Limit = 0,
    judge: Annotated[list[str] | None, typer.Option("--judge", help="Only this judge.")] = None,
    address: Address = "",
    json: Json = False,
    yes: Annotated[bool, typer.Option("--yes", help="Agree to the price.")] = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Own a run that a dead host left locked.")
    ] = False,
) -> int:
    """Ask what is missing, then write the tables. The same command again resumes."""
    from judgebias.cli.run import Overrides
    from judgebias.cli.run import run_file as start

    overrides = Overrides(
        pairs=pairs,
        out=out,
        address=address,
        judges=tuple(judge or ()),
        limit=limit,
        yes=yes,
        take_over=take_over,
    )
    return start(run_file, overrides, Screen(), as_json=json)


@app.command()
def summarize(
    sources: Annotated[
        list[str], typer.Argument(metavar="SOURCE...", help="Run directory or verdict files.")
    ],
    *,
    out: Out = "",
    pairs: Annotated[str, typer.Option("--pairs", help="Join questions, texts, gold.")] = "",
    cluster: Annotated[str, typer.Option("--cluster", help="question, pair or a column.")] = "",
    json: Json = False,
) -> int:
    """Write all tables and the report from what is recorded; asks nobody, needs no Ray."""
    summary = summarize_sources(sources, out, pairs=pairs, cluster=cluster, screen=Screen())
    print_summary(summary, as_json=json)
    return Exit.COMPLETE


@app.command()
def reparse(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A run directory.")],
    *,
    json: Json = False,
) -> int:
    """Read the kept raw replies again by today's rules, and write the tables; buys nothing."""
    print_summary(reread_replies(folder, Screen()), as_json=json)
    return Exit.COMPLETE


@app.command()
def salvage(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A run directory.")],
) -> int:
    """Save the whole records of damaged journal files; what is lost is asked again by `run`."""
    salvage_run(folder, Screen())
    return Exit.COMPLETE


@app.command()
def status(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A run directory.")],
    *,
    json: Json = False,
) -> int:
    """Show how far a running or stopped run is."""
    print_status(folder, as_json=json)
    return Exit.COMPLETE
