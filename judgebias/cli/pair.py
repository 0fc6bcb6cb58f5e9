"""`judgebias pair`: files of model outputs -> a file of pairs, and what did not match."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from judgebias.cli.screen import Screen
from judgebias.errors import UsageError
from judgebias.pairs.matching import Contest, Matched, match_outputs
from judgebias.pairs.outputs import Names, Outputs, read_outputs
from judgebias.publish import publish

_SHOWN = 5

Files = Annotated[list[Path], typer.Argument(metavar="OUT1 OUT2 ...", help="One file per model.")]
On = Annotated[str, typer.Option("--on", help="The column that names an item.")]
PairsFile = Annotated[Path, typer.Option("--out", help="The file of pairs to write.")]
Baseline = Annotated[str, typer.Option("--baseline", help="Pair every model with this one, as B.")]
Question = Annotated[str, typer.Option("--question", help="The column of the question.")]
Answer = Annotated[str, typer.Option("--answer", help="The column of the answer.")]
Model = Annotated[
    str, typer.Option("--model", help="The column of the model; else the file's name.")
]


def _write_parquet(pairs: pl.DataFrame, path: Path) -> None:
    pairs.write_parquet(path, compression="zstd")


def _write_lines(pairs: pl.DataFrame, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for row in pairs.iter_rows(named=True):
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _write_csv(pairs: pl.DataFrame, path: Path) -> None:
    pairs.write_csv(path, quote_style="non_numeric")


_WRITERS: Mapping[str, Callable[[pl.DataFrame, Path], None]] = {
    ".parquet": _write_parquet,
    ".jsonl": _write_lines,
    ".ndjson": _write_lines,
    ".csv": _write_csv,
}


def pair_files(
    files: Sequence[Path],
    out: Path,
    *,
    names: Names,
    baseline: str,
    screen: Screen,
    as_json: bool,
) -> None:
    """Write the pairs, and say for each two models what did not match."""
    writer = _WRITERS.get(out.suffix.lower())
    if writer is None:
        raise UsageError(f"--out {out}: unknown ending", expected=f"one of {', '.join(_WRITERS)}")
    if len(files) < 2:
        raise UsageError("pair was given one file", expected="two or more, one per model")
    if out.resolve() in {file.resolve() for file in files}:
        raise UsageError(f"--out {out} is one of the files of outputs", do="choose another --out")
    outputs = [read_outputs(file, names) for file in files]
    matched = match_outputs(outputs, baseline)
    publish(out, lambda beside: writer(matched.pairs, beside))
    for output in outputs:
        _say_file(output, screen)
    if as_json:
        typer.echo(json.dumps([asdict(c) for c in matched.contests], indent=2, ensure_ascii=False))
    else:
        _print(matched, out)


def _say_file(output: Outputs, screen: Screen) -> None:
    screen.say(f"{output.file}: {len(output.items):,} items of {output.model}")
    for reject in output.rejects[:_SHOWN]:
        screen.say(f"  left out, row {reject.row}: {reject.field or 'row'}: {reject.reason}")
    if output.n_rejects > _SHOWN:
        screen.say(f"  left out: {output.n_rejects - _SHOWN:,} more rows")


def _print(matched: Matched, out: Path) -> None:
    for contest in matched.contests:
        for line in _lines(contest):
            typer.echo(line)
    typer.echo(f"{matched.pairs.height:,} pairs are in {out}")


def _lines(contest: Contest) -> list[str]:
    same = f", {contest.n_identical:,} with identical answers" if contest.n_identical else ""
    head = f"A = {contest.model_a}, B = {contest.model_b}: {contest.n_pairs:,} pairs{same}"
    return [head, *(f"  {line}" for line in contest.complaints)]
