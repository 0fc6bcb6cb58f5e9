"""P-26: the two orders of a pair answered by different models are warned of and flagged."""

from __future__ import annotations

import polars as pl
import pytest

from judgebias.summary.snapshots import MODEL_CHANGE_COLUMNS, model_changes, snapshot_warnings

SCHEMA = {
    "judge": pl.Categorical,
    "task": pl.Categorical,
    "pair_id": pl.String,
    "repeat": pl.Int32,
    "order": pl.Enum(["ab", "ba"]),
    "slot": pl.String,
    "model": pl.Categorical,
}
Answer = str | None


def calls(*pairs: tuple[Answer, Answer], judge: str = "j", slot: Answer = "first") -> pl.DataFrame:
    """Pairs 0, 1, ... by the models that answered in ab and in ba; "-" for no call."""
    rows = [
        (judge, "t", f"{n}", 1, order, slot, model)
        for n, pair in enumerate(pairs)
        for order, model in zip(("ab", "ba"), pair, strict=True)
        if model != "-"
    ]
    return pl.DataFrame(rows, SCHEMA, orient="row")


def found(frame: pl.DataFrame) -> tuple[list[tuple[object, ...]], list[str]]:
    changes = model_changes(frame.lazy())
    assert tuple(changes.columns) == MODEL_CHANGE_COLUMNS
    return changes.rows(), snapshot_warnings(frame.lazy(), changes)


@pytest.mark.parametrize(
    "frame",
    [
        calls(("m-1", "m-1"), ("m-1", "m-1")),
        calls(("m-1", None), (None, None)),
        calls(),
        calls(("m-1", "m-2"), slot=None),
    ],
    ids=["one model", "unknown", "nothing", "no verdict"],
)
def test_nothing_is_said_where_nothing_is_known_to_differ(frame: pl.DataFrame) -> None:
    assert found(frame) == ([], [])


def test_pairs_of_two_snapshots_are_flagged_and_counted() -> None:
    frame = calls(("m-1", "m-1"), ("m-1", "m-2"), ("m-2", "m-1"), ("m-2", "m-2"), ("m-2", "-"))
    rows, (warning,) = found(frame)
    assert rows == [("j", "t", "1", 1, "m-1", "m-2"), ("j", "t", "2", 1, "m-2", "m-1")]
    assert warning == (
        "j: 2 models answered its calls (m-2 5, m-1 4); in 2 pairs the two orders come from "
        "different models, so what differs there may be the model and not the order: see "
        "tables/model_changes.csv"
    )
    # The rows of a frame have no order that matters.
    assert found(frame.reverse()) == (rows, [warning])


def test_a_change_between_pairs_is_said_and_flags_none() -> None:
    rows, (warning,) = found(calls(("m-1", "m-1"), ("m-2", "m-2")))
    assert rows == []
    expected = "j: 2 models answered its calls (m-1 2, m-2 2), never both in one pair"
    assert warning == expected


def test_repeats_are_pairs_of_their_own() -> None:
    first = calls(("m-1", "m-1"))
    second = calls(("m-2", "m-2")).with_columns(repeat=pl.lit(2, pl.Int32))
    assert found(pl.concat([first, second]))[0] == []


def test_judges_are_told_apart_and_many_names_are_cut_short() -> None:
    many = calls(*((f"m-{n}", f"m-{n}") for n in range(9)), judge="k")
    _, (one, other) = found(pl.concat([calls(("a", "b")), many]))
    assert one.startswith("j: 2 models answered its calls (a 1, b 1); in 1 pairs")
    assert other.startswith("k: 9 models")
    assert other.endswith("m-5 2, and 3 more), never both in one pair")
