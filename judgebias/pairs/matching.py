"""Pairs out of the outputs of two or more models, and what did not match."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import polars as pl

from judgebias.errors import InputError
from judgebias.pairs.outputs import Key, Outputs

_SHOWN = 5

PAIR_FILE = ("task", "pair_id", "question", "answer_a", "answer_b", "model_a", "model_b")
"""Columns of a file of pairs; `reference` follows where an output file has it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Contest:
    """Two models side by side."""

    model_a: str
    model_b: str
    n_pairs: int
    n_identical: int
    only_a: tuple[str, ...]
    """Ids that only the first file has."""
    only_b: tuple[str, ...]
    questions_differ: tuple[str, ...]
    """Ids that stand for different questions in the two files."""
    no_question: tuple[str, ...]
    """Ids whose question is in neither file."""

    @property
    def complaints(self) -> list[str]:
        """Say what did not match, a line each."""
        told = (
            (self.only_a, f"only in {self.model_a}"),
            (self.only_b, f"only in {self.model_b}"),
            (self.questions_differ, "left out: one id, but different questions or references"),
            (self.no_question, "left out: no question in any file"),
        )
        return [f"{len(ids):,} {what}: {_some(ids)}" for ids, what in told if ids]


@dataclass(frozen=True, kw_only=True, slots=True)
class Matched:
    """The pairs of all contests."""

    pairs: pl.DataFrame
    contests: tuple[Contest, ...]


def match_outputs(outputs: Sequence[Outputs], baseline: str = "") -> Matched:
    """Pair the outputs of models item by item.

    Parameters
    ----------
    outputs
        Two models or more. Each is paired with each, the earlier one as A.
    baseline
        The model that all others are paired with instead; it is B, so that the win rate of A is
        theirs.

    Raises
    ------
    InputError
        Two files are of one model, no model is called `baseline`, or nothing matches.
    """
    _check(outputs, baseline)
    rows: list[dict[str, str | None]] = []
    contests: list[Contest] = []
    questions = _Questions(outputs)
    for a, b in _contests(outputs, baseline):
        both = [key for key in a.items if key in b.items]
        differ = {key for key in both if questions.differ(key, a, b)}
        missing = {key for key in both if questions.text(key) is None}
        kept = [key for key in both if key not in differ | missing]
        rows += [_row(key, a, b, questions) for key in kept]
        contests.append(
            Contest(
                model_a=a.model,
                model_b=b.model,
                n_pairs=len(kept),
                n_identical=sum(a.items[key].answer == b.items[key].answer for key in kept),
                only_a=_ids(key for key in a.items if key not in b.items),
                only_b=_ids(key for key in b.items if key not in a.items),
                questions_differ=_ids(key for key in both if key in differ),
                no_question=_ids(key for key in both if key in missing - differ),
            )
        )
    if not rows:
        said = "; ".join(line for contest in contests for line in contest.complaints)
        raise InputError(
            f"no item of one file matches an item of another ({said or 'the files are empty'})",
            expected="the same ids (and tasks) in the files",
            do="check --on",
        )
    return Matched(pairs=_frame(rows), contests=tuple(contests))


class _Questions:
    """What each item was asked, by any file that says so."""

    def __init__(self, outputs: Sequence[Outputs]) -> None:
        self._texts: dict[Key, str] = {}
        self._references: dict[Key, str] = {}
        for output in outputs:
            for key, item in output.items.items():
                if item.question is not None:
                    self._texts.setdefault(key, item.question)
                if item.reference is not None:
                    self._references.setdefault(key, item.reference)

    def text(self, key: Key) -> str | None:
        return self._texts.get(key)

    def reference(self, key: Key) -> str | None:
        return self._references.get(key)

    def differ(self, key: Key, a: Outputs, b: Outputs) -> bool:
        """Tell whether the two files, or one of them and an earlier one, disagree on an item."""
        items = (a.items[key], b.items[key])
        asked = {self.text(key), *(item.question for item in items)} - {None}
        known = {self.reference(key), *(item.reference for item in items)} - {None}
        return len(asked) > 1 or len(known) > 1


def _check(outputs: Sequence[Outputs], baseline: str) -> None:
    models = [output.model for output in outputs]
    twice = sorted({model for model in models if models.count(model) > 1})
    if twice:
        files = ", ".join(output.file for output in outputs if output.model == twice[0])
        raise InputError(
            f"{files} are both of the model {twice[0]!r}",
            expected="one file per model",
            do="name the models in a column, or by the files' names",
        )
    if baseline and baseline not in models:
        raise InputError(
            f"no file is of the model {baseline!r}", expected=f"one of {', '.join(models)}"
        )


def _contests(outputs: Sequence[Outputs], baseline: str) -> list[tuple[Outputs, Outputs]]:
    if not baseline:
        return list(combinations(outputs, 2))
    fixed = next(output for output in outputs if output.model == baseline)
    return [(output, fixed) for output in outputs if output is not fixed]


def _row(key: Key, a: Outputs, b: Outputs, questions: _Questions) -> dict[str, str | None]:
    task, item = key
    return {
        "task": task,
        # The models belong to the name, so that a model added later renames no pair.
        "pair_id": f"{item}:{a.model}:{b.model}",
        "question": questions.text(key),
        "answer_a": a.items[key].answer,
        "answer_b": b.items[key].answer,
        "model_a": a.model,
        "model_b": b.model,
        "reference": questions.reference(key),
    }


def _frame(rows: list[dict[str, str | None]]) -> pl.DataFrame:
    frame = pl.DataFrame(rows, dict.fromkeys((*PAIR_FILE, "reference"), pl.String))
    twice = frame.filter(frame.select("task", "pair_id").is_duplicated())
    if not twice.is_empty():
        raise InputError(
            f"two pairs would be called {twice['pair_id'][0]!r}: a colon in ids and models is"
            " what parts them",
            do="rename the models",
        )
    has_reference = frame["reference"].null_count() < frame.height
    return frame if has_reference else frame.drop("reference")


def _ids(keys: Iterable[Key]) -> tuple[str, ...]:
    return tuple(item if task == "default" else f"{task}/{item}" for task, item in keys)


def _some(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _SHOWN:,} more" if len(ids) > _SHOWN else ""
    return ", ".join(ids[:_SHOWN]) + more
