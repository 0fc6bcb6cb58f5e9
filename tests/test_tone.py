from __future__ import annotations

import polars as pl
import pytest

from judgebias.tone import DENSITY_COLUMNS, KINDS, markdown_density, pair_densities


def marks(text: str | None) -> dict[str, float | None]:
    frame = pl.DataFrame({"text": [text]}, {"text": pl.String})
    return frame.select(**markdown_density(pl.col("text"))).row(0, named=True)


@pytest.mark.parametrize(
    ("text", "kind", "count"),
    [
        ("# One\n\n### Two\n#hash\n a # b", "headers", 2),
        ("####### seven", "headers", 0),
        ("- a\n* b\n+ c\n  1. d\n2) e\n-no\n1.5 kg", "lists", 5),
        ("**a** and **b c** and __d__ and 2**3**4", "bold", 4),
        ("**not\nclosed** here", "bold", 0),
        ("|a|b|\n|--|--|\n|1|2|\nx | y", "tables", 3),
        ("|a|\r\n|b|\r\n", "tables", 2),
        ("text\n```python\n# no\n- no\n```\n- yes", "lists", 1),
        ("```\n# open to the end\n", "headers", 0),
        ("---", "lists", 0),
    ],
)
def test_marks_are_counted_per_1000_characters(text: str, kind: str, count: int) -> None:
    assert marks(text)[kind] == pytest.approx(1000 * count / len(text))


def test_an_empty_text_has_no_marks_and_an_unknown_one_no_density() -> None:
    assert set(marks("").values()) == {0.0}
    assert set(marks(None).values()) == {None}


def test_characters_are_code_points() -> None:
    assert marks("- ä€𝄞 ")["lists"] == 1000 / 6


def test_both_answers_of_a_pair() -> None:
    frame = pl.DataFrame({"answer_a": ["# a"], "answer_b": ["- b"]})
    found = frame.select(pair_densities(pl.col("answer_a"), pl.col("answer_b")))
    assert tuple(found.columns) == DENSITY_COLUMNS
    assert len(DENSITY_COLUMNS) == 2 * len(KINDS)
    assert (found["headers_a"].item(), found["headers_b"].item()) == (1000 / 3, 0.0)
    assert (found["lists_a"].item(), found["lists_b"].item()) == (0.0, 1000 / 3)
