"""The errors judgebias raises on purpose, and the exit code each one ends a command with.

::

    JudgebiasError          something the user can mend: one block, no traceback
    ├── UsageError          2   wrong command, run file or input; nothing was asked
    │   ├── ConfigError         the run file
    │   └── InputError          pairs or verdict records
    ├── Stopped             4   stopped early; the same command goes on
    │   ├── JudgeHalted         a judge cannot go on: key, model, quota, a long pause
    │   └── RayLost             the Ray that the run was on is gone
    └── JournalDamaged      2   a record in the middle of the journal fails its checksum
"""

from __future__ import annotations


class JudgebiasError(Exception):
    """An error with the three parts a user needs: what was given, what was expected, what to do."""

    exit_code = 2

    def __init__(self, given: str, *, expected: str = "", do: str = "") -> None:
        self.given = given
        self.expected = expected
        self.do = do
        super().__init__(given)

    def __str__(self) -> str:
        """One block: the fault, then the expectation, then the remedy."""
        lines = [self.given]
        if self.expected:
            lines.append(f"  expected: {self.expected}")
        if self.do:
            lines.append(f"  do: {self.do}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        """Cross processes whole: the default would lose the keyword parts."""
        return (_rebuild, (type(self), self.given, self.expected, self.do))


def _rebuild(kind: type[JudgebiasError], given: str, expected: str, do: str) -> JudgebiasError:
    return kind(given, expected=expected, do=do)


class UsageError(JudgebiasError):
    """A command, run file or input that cannot be used; nothing was asked."""


class ConfigError(UsageError):
    """A run file that says something it cannot mean."""


class InputError(UsageError):
    """Pairs or verdict records that cannot be read or contradict each other."""


class JournalDamaged(JudgebiasError):
    """A journal record before the last one fails its checksum."""


class Stopped(JudgebiasError):
    """The run stopped before it was complete, and the same command goes on from here."""

    exit_code = 4


class JudgeHalted(Stopped):
    """A judge refuses every call (key, model, quota), so asking on would only cost."""


class RayLost(Stopped):
    """The Ray cluster that the run was on is gone."""
