"""Outputs of one model: a file with one row an item, read by the same rules as pairs."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import jiter
import pyarrow.parquet as pq

from judgebias.errors import InputError
from judgebias.pairs.block import Reject, Source
from judgebias.pairs.read import close_readers, read_block
from judgebias.pairs.source import find_sources, open_plain, open_seekable, reading
from judgebias.pairs.spec import PairsSpec
from judgebias.pairs.survey import survey_pairs

QUESTIONS = ("question", "prompt", "instruction", "query", "input")
ANSWERS = ("answer", "output", "response", "completion", "generation", "prediction", "text")
MODELS = ("model", "model_id", "model_name", "generator")
_LINES = 200
"""Lines of a JSONL file whose keys are its columns."""

Key = tuple[str, str]
"""(task, id)"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Names:
    """What the columns of the output files are called; "" = found by the usual names."""

    on: str
    """The column that names an item."""
    question: str = ""
    answer: str = ""
    model: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """What one model was asked and said."""

    question: str | None
    """None where the file has no such column."""
    answer: str
    reference: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Outputs:
    """The items of one model."""

    file: str
    model: str
    items: Mapping[Key, Item]
    rejects: tuple[Reject, ...]
    """Rows that cannot be used, the first ones."""
    n_rejects: int


def read_outputs(path: Path, names: Names) -> Outputs:
    """Read one file of outputs.

    Raises
    ------
    InputError
        The file cannot be read, a column is missing, an id stands for two outputs, or the file
        holds several models.
    """
    spec = PairsSpec(source=str(path.absolute()))
    sources, _ = find_sources(spec)
    if len(sources) != 1:
        raise InputError(
            f"{path} is {len(sources)} files", expected="one file per model", do="name each file"
        )
    columns, has_question = _columns(columns_of(sources[0]), path, names)
    spec = PairsSpec(source=str(path.absolute()), columns=columns)
    survey = survey_pairs(spec)
    items: dict[Key, Item] = {}
    models: set[str] = set()
    for block in survey.blocks:
        for pair in read_block(block, spec):
            models |= {pair.model_a} if pair.model_a else set()
            items[pair.task, pair.pair_id] = Item(
                question=pair.question if has_question else None,
                answer=pair.answer_a,
                reference=pair.reference,
            )
    close_readers()
    return Outputs(
        file=str(path),
        model=_model(models, path),
        items=items,
        rejects=tuple(survey.rejects),
        n_rejects=survey.n_rejects,
    )


def columns_of(source: Source) -> list[str]:
    """List the columns of a file."""
    with reading(source.file):
        if source.format == "parquet":
            with open_seekable(source) as stream:
                return list(pq.ParquetFile(stream).schema_arrow.names)
        with open_plain(source) as stream:
            if source.format == "csv":
                text = io.TextIOWrapper(stream, "utf-8-sig", errors="replace", newline="")
                return next(csv.reader(text), [])
            lines = [line for line in islice(stream, _LINES) if line.strip()]
    return list(dict.fromkeys(key for line in lines for key in _keys(line)))


def _keys(line: bytes) -> list[str]:
    try:
        row = jiter.from_json(line.removeprefix(b"\xef\xbb\xbf"))
    except ValueError:
        return []  # reading the file says what is wrong with the line
    return [str(key) for key in row] if isinstance(row, dict) else []


def _columns(found: Sequence[str], path: Path, names: Names) -> tuple[dict[str, str], bool]:
    """Map our columns to the file's, and tell whether it has the question."""
    answer = _choose("answer", names.answer, ANSWERS, found, path)
    question = _find(names.question, QUESTIONS, found, path)
    model = _find(names.model, MODELS, found, path)
    # The readers want a question; the answer stands in for one that the file does not have.
    columns = {"pair_id": names.on, "answer_a": answer, "answer_b": answer}
    columns["question"] = question or answer
    if names.on not in found:
        raise InputError(
            f"{path} has no column {names.on!r}; it has {', '.join(found) or 'none'}",
            expected="a column that names each item, the same in all files",
            do="name it with --on",
        )
    if model:
        columns["model_a"] = model
    return columns, bool(question)


def _choose(what: str, given: str, usual: Sequence[str], found: Sequence[str], path: Path) -> str:
    name = _find(given, usual, found, path)
    if not name:
        raise InputError(
            f"{path} has no column for the {what}; it has {', '.join(found) or 'none'}",
            expected=f"one of {', '.join(usual)}",
            do=f"name it with --{what}",
        )
    return name


def _find(given: str, usual: Sequence[str], found: Sequence[str], path: Path) -> str:
    if not given:
        return next((name for name in usual if name in found), "")
    if given not in found:
        raise InputError(
            f"{path} has no column {given!r}; it has {', '.join(found) or 'none'}",
            expected="the column in every file",
        )
    return given


def _model(models: set[str], path: Path) -> str:
    if len(models) > 1:
        shown = ", ".join(sorted(models)[:5])
        raise InputError(
            f"{path} holds the outputs of {len(models)} models: {shown}",
            expected="one model per file",
            do="write each model's outputs to a file of its own",
        )
    name = path.name.removesuffix(".gz")
    return next(iter(models)) if models else name.rpartition(".")[0] or name
