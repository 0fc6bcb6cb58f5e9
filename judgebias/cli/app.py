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

import judgebias.cli.pair as options_of_pair
from judgebias.cli.exits import Exit
from judgebias.cli.init import write_run_file
from judgebias.cli.pair import pair_files
from judgebias.cli.plan import Wish, print_plan
from judgebias.cli.reparse import reparse as reread_replies
from judgebias.cli.salvage import salvage_run
from judgebias.cli.screen import Screen
from judgebias.cli.selftest import print_self_test
from judgebias.cli.show import show_pair
from judgebias.cli.status import print_status
from judgebias.cli.summarize import summarize_sources
from judgebias.cli.table import print_written
from judgebias.errors import JudgebiasError
from judgebias.pairs.outputs import Names
from judgebias.pipeline.quiet import FAREWELL
from judgebias.selftest.run import REPETITIONS

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
TakeOver = Annotated[
    bool, typer.Option("--take-over", help="Own a run that a dead host left locked.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")]
Judges = Annotated[list[str] | None, typer.Option("--judge", help="Only this judge.")]
Yes = Annotated[bool, typer.Option("--yes", help="Agree to the price.")]
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
def init(
    run_file: Annotated[
        Path, typer.Argument(metavar="[RUN.toml]", help="The run file to write.")
    ] = Path("run.toml"),
) -> int:
    """Write a commented run file, every setting with its default."""
    write_run_file(run_file)
    typer.echo(f"{run_file} is written: name the pairs and the judge in it, then try `plan`")
    return Exit.COMPLETE


@app.command()
def pair(
    outputs: options_of_pair.Files,
    *,
    on: options_of_pair.On,
    out: options_of_pair.PairsFile,
    baseline: options_of_pair.Baseline = "",
    question: options_of_pair.Question = "",
    answer: options_of_pair.Answer = "",
    model: options_of_pair.Model = "",
    json: Json = False,
) -> int:
    """Make pairs of the outputs of two or more models; says what did not match."""
    names = Names(on=on, question=question, answer=answer, model=model)
    screen = Screen()
    pair_files(outputs, out, names=names, baseline=baseline, screen=screen, as_json=json)
    return Exit.COMPLETE


@app.command()
def plan(
    run_file: RunFile,
    *,
    limit: Limit = 0,
    consistency: Annotated[
        float, typer.Option("--consistency", min=0, max=1, help="What is expected of a judge.")
    ] = 0.8,
    width: Annotated[
        float, typer.Option("--width", min=0.001, max=0.999, help="Of its 95% interval.")
    ] = 0.1,
    json: Json = False,
) -> int:
    """Read and check the input, count calls, tokens and price; asks nobody, writes nothing."""
    print_plan(run_file, limit=limit, wish=Wish(consistency=consistency, width=width), as_json=json)
    return Exit.COMPLETE


@app.command()
def show(
    run: Annotated[
        str, typer.Argument(metavar="RUN.toml|DIR", help="A run file or a run directory.")
    ],
    pair: Annotated[str, typer.Argument(metavar="PAIR", help="A pair_id, or TASK/PAIR_ID.")],
    *,
    judge: Annotated[str, typer.Option("--judge", help="Only this judge.")] = "",
) -> int:
    """Show one comparison: both prompts as sent; after a run also replies, slots and cell."""
    show_pair(run, pair, judge)
    return Exit.COMPLETE


@app.command()
def run(
    run_file: RunFile,
    *,
    pairs: Annotated[str, typer.Option("--pairs", help="Pairs instead of the run file's.")] = "",
    out: Out = "",
    limit: Limit = 0,
    judge: Judges = None,
    address: Address = "",
    json: Json = False,
    yes: Yes = False,
    take_over: TakeOver = False,
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
def probe(
    run_file: RunFile,
    *,
    items: Annotated[
        int, typer.Option("--items", min=0, help="Texts to show twice; 0: as the run file says.")
    ] = 0,
    out: Out = "",
    judge: Judges = None,
    address: Address = "",
    json: Json = False,
    yes: Yes = False,
    take_over: TakeOver = False,
) -> int:
    """Show each judge the same text in both slots, and only that; the same command resumes."""
    from judgebias.cli.run import Overrides, probe_file

    overrides = Overrides(
        out=out,
        address=address,
        judges=tuple(judge or ()),
        items=items,
        yes=yes,
        take_over=take_over,
    )
    return probe_file(run_file, overrides, Screen(), as_json=json)


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
    written = summarize_sources(sources, out, pairs=pairs, cluster=cluster, screen=Screen())
    print_written(written, as_json=json)
    return Exit.COMPLETE


@app.command()
def reparse(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A run directory.")],
    *,
    json: Json = False,
) -> int:
    """Read the kept raw replies again by today's rules, and write the tables; buys nothing."""
    print_written(reread_replies(folder, Screen()), as_json=json)
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


@app.command()
def selftest(
    *,
    json: Json = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of every draw.")] = 0,
    repetitions: Annotated[
        int, typer.Option("--repetitions", min=20, help="Of each planted judge.")
    ] = REPETITIONS,
) -> int:
    """Recover planted biases and check the sizes of the tests: two minutes on two cores."""
    return print_self_test(seed=seed, repetitions=repetitions, as_json=json)
