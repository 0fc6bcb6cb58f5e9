from __future__ import annotations

import inspect
import pickle

import pytest

from judgebias import errors
from judgebias.cli.exits import Exit
from judgebias.errors import JudgebiasError
from judgebias.journal.segment import JournalWriteError

CODES = {
    "JudgebiasError": 2,
    "UsageError": 2,
    "ConfigError": 2,
    "InputError": 2,
    "JournalDamaged": 2,
    "Stopped": 4,
    "JudgeHalted": 4,
    "RayLost": 4,
}
TREE = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)]


def test_every_error_ends_a_command_with_its_code() -> None:
    assert {kind.__name__: kind.exit_code for kind in TREE} == CODES
    assert set(CODES.values()) == {Exit.USAGE, Exit.STOPPED}


@pytest.mark.parametrize("kind", [*TREE, JournalWriteError])
def test_an_error_crosses_processes_whole(kind: type[JudgebiasError]) -> None:
    error = kind("what", expected="that", do="this")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert (copy.given, copy.expected, copy.do) == ("what", "that", "this")
    assert (str(copy), copy.args) == (str(error), error.args)


def test_a_message_says_what_was_given_expected_and_to_do() -> None:
    error = JudgebiasError("no such file", expected="a file", do="make one")
    assert str(error).splitlines() == ["no such file", "  expected: a file", "  do: make one"]
    assert str(JudgebiasError("only this")) == "only this"


def test_the_tree_in_the_docstring_names_every_error() -> None:
    drawn = str(errors.__doc__)
    assert [kind.__name__ for kind in TREE if kind.__name__ not in drawn] == []


def test_the_exit_codes_are_the_published_ones() -> None:
    assert [int(code) for code in Exit] == [0, 1, 2, 3, 4, 70, 130]
