from __future__ import annotations

import pytest

from judgebias.errors import InputError
from judgebias.stats.binomial import sign_test_p
from judgebias.textbook import position_bias_report

TWENTY = [("x" * n, "x" * (n + 1)) for n in range(20)]


def longer(first: str, second: str) -> str:
    if len(first) == len(second):
        return "tie"
    return "first" if len(first) > len(second) else "second"


def longer_by_three(first: str, second: str) -> str:
    return longer(first, second) if abs(len(first) - len(second)) >= 3 else "first"


def test_a_judge_by_length_is_consistent() -> None:
    assert position_bias_report(TWENTY, longer) == {
        "consistency": 1.0,
        "first_position_rate": 0.5,
        "p_value": 1.0,
        "verdicts": ["B"] * 20,
    }


def test_a_judge_that_always_says_first() -> None:
    assert position_bias_report(TWENTY, lambda *_: "first") == {
        "consistency": 0.0,
        "first_position_rate": 1.0,
        "p_value": 2 / 2**40,
        "verdicts": ["tie"] * 20,
    }


def test_a_judge_that_reads_only_large_differences() -> None:
    report = position_bias_report([("aa", "bbb"), ("a", "bbbbbb"), ("aaaa", "b")], longer_by_three)
    assert report["verdicts"] == ["tie", "B", "A"]
    assert report["consistency"] == 2 / 3
    assert report["first_position_rate"] == 4 / 6
    assert report["p_value"] == sign_test_p(4, 6)


def test_no_pairs_keep_the_published_defaults() -> None:
    assert position_bias_report([], longer) == {
        "consistency": 1.0,
        "first_position_rate": 0.5,
        "p_value": 1.0,
        "verdicts": [],
    }


def test_a_judge_of_ties_is_consistent_and_decides_nothing() -> None:
    report = position_bias_report(iter([("a", "b"), ("c", "d")]), lambda *_: "tie")
    assert (report["consistency"], report["first_position_rate"]) == (1.0, 0.5)
    assert (report["p_value"], report["verdicts"]) == (1.0, ["tie", "tie"])


def test_the_judge_sees_each_pair_once_in_each_order() -> None:
    seen: list[tuple[str, str]] = []

    def record(first: str, second: str) -> str:
        seen.append((first, second))
        return "second"

    position_bias_report([("a", "b"), ("c", "d")], record)
    assert sorted(seen) == [("a", "b"), ("b", "a"), ("c", "d"), ("d", "c")]


@pytest.mark.parametrize("answer", ["First", "A", "", None, 1])
def test_another_answer_is_an_error_and_not_a_tie(answer: object) -> None:
    with pytest.raises(InputError, match='"first", "second" or "tie"'):
        position_bias_report([("a", "b")], lambda *_: answer)  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize(("k", "n", "p"), [(5, 10, 1.0), (0, 5, 2 / 32), (0, 0, 1.0)])
def test_textbook_sign_tests(k: int, n: int, p: float) -> None:
    assert sign_test_p(k, n) == p
