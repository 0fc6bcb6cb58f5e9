"""A template, taken apart once, and the prompts that are put together from its parts.

Texts are joined, never formatted: an answer passes through no step that reads it, so braces, `$`,
backslashes and another template's words in it mean nothing.

Every text stands between tags that carry a code, such as `<first answer 1f2e3d4c5b6a7988>`. The
code is a hash of the pair's digest (key and texts of the pair) and the repeat, so whoever wrote an
answer cannot know it, a resumed run derives the same one, and both orders of a pair share it: the
two prompts differ by the exchange of the texts alone. Should a code occur in one of the texts all
the same, the next one of the series is taken.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache

from judgebias.calls import Call
from judgebias.prompts.form import VerdictForm, instruction

TAGS = {
    "question": "question",
    "first": "first answer",
    "second": "second answer",
    "reference": "reference answer",
}
"""Placeholder -> name of the tag round its text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompt:
    """What is sent: a fixed part, which a server can cache, and the pair."""

    system: str
    user: str

    def __len__(self) -> int:
        """Characters of both parts."""
        return len(self.system) + len(self.user)


@dataclass(frozen=True, kw_only=True, slots=True)
class Template:
    """A checked template with its rubric and criteria filled in."""

    name: str
    fixed: str
    """Everything before the first text of a pair; it becomes the system message."""
    parts: tuple[str, ...]
    """The rest, literals and placeholders in turn; odd places are names of `TAGS`."""
    criteria: tuple[str, ...] = ()
    """Where there are any, sums of yes and no decide instead of a verdict word."""

    @property
    def text(self) -> str:
        """Everything that is the same for all calls; it goes into the judge's fingerprint."""
        shown = [
            f"{{{part}}}".join(_tags(part, "{code}")) if n % 2 else part
            for n, part in enumerate(self.parts)
        ]
        instructions = [instruction(form, len(self.criteria)) for form in VerdictForm]
        return "\n\n".join([self.fixed, "".join(shown), *instructions])

    def render(self, call: Call, form: VerdictForm) -> Prompt:
        """Put a call's texts between their tags; the instruction for the form ends the fixed part.

        Model names, gold labels and figures never enter: only the question, the two answers and
        the reference are read from the pair.
        """
        texts = {
            "question": call.pair.question,
            "first": call.first,
            "second": call.second,
            "reference": call.pair.reference,
        }
        code = delimiter(call)
        user: list[str] = []
        gap = False
        for n, part in enumerate(self.parts):
            if not n % 2:
                # Where there is no reference, the blank line after it goes with it.
                user.append(part.lstrip("\n") if gap else part)
                continue
            text = texts[part]
            gap = text is None
            if text is not None:
                opening, closing = _tags(part, code)
                # Apart, so that a long text is copied once, by the join.
                user += (opening, text, closing)
        system = _system(self.fixed, form, len(self.criteria))
        return Prompt(system=system, user="".join(user))


def _tags(placeholder: str, code: str) -> tuple[str, str]:
    """Make what stands before and after a text."""
    tag = TAGS[placeholder]
    return f"<{tag} {code}>\n", f"\n<end of {tag} {code}>"


@lru_cache(maxsize=64)
def _system(fixed: str, form: VerdictForm, n_criteria: int) -> str:
    """Join what is the same for all calls of a judge."""
    return (f"{fixed}\n\n" if fixed else "") + instruction(form, n_criteria)


def delimiter(call: Call) -> str:
    """Derive the code of a call's tags: 16 hex digits that occur in none of its texts."""
    pair = call.pair
    digest = call.digest or pair.digest()
    question, a, b, reference = pair.question, pair.answer_a, pair.answer_b, pair.reference or ""
    number = 0
    while True:
        code = _code(digest, call.repeat, number)
        if not (code in question or code in a or code in b or code in reference):
            return code
        number += 1


@lru_cache(maxsize=4096)
def _code(digest: bytes, repeat: int, number: int) -> str:
    """Hash the name of a call without its order: both orders come by within a window's length."""
    seed, salt = digest + repeat.to_bytes(8, "little"), number.to_bytes(8, "little")
    return hashlib.blake2b(seed, digest_size=8, salt=salt, person=b"delimiter").hexdigest()
