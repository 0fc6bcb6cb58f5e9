"""Families: who made a model, told by its name.

A judge likes text such as its own family writes, so a run says which judges stand beside their own
family's answers. A model derived from another (vicuna from llama) is a family of its own: its
answers come from other data. A run file's `[families]` can say otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from judgebias.config import RunConfig, WireJudge

_GLOBS: Final = {
    "gpt-neo*": "eleuther",
    "gpt-j*": "eleuther",
    "gpt4all*": "gpt4all",
    "gpt*": "gpt",
    "ft:gpt*": "gpt",
    "chatgpt*": "gpt",
    "text-davinci*": "gpt",
    "davinci*": "gpt",
    "o[134]": "gpt",
    "o[134]-*": "gpt",
    "claude*": "claude",
    "*anthropic.claude*": "claude",
    "gemini*": "gemini",
    "gemma*": "gemini",
    "bard*": "gemini",
    "palm*": "gemini",
    "llama*": "llama",
    "meta-llama*": "llama",
    "codellama*": "llama",
    "*meta.llama*": "llama",
    "mistral*": "mistral",
    "mixtral*": "mistral",
    "magistral*": "mistral",
    "ministral*": "mistral",
    "codestral*": "mistral",
    "qwen*": "qwen",
    "qwq*": "qwen",
    "deepseek*": "deepseek",
    "phi-*": "phi",
    "phi[1-9]*": "phi",
    "grok*": "grok",
    "command*": "command",
    "c4ai-*": "command",
    "aya-*": "command",
    "nova-*": "nova",
    "*amazon.nova*": "nova",
    "kimi*": "kimi",
    "moonshot*": "kimi",
    "glm*": "glm",
    "chatglm*": "glm",
    "yi-*": "yi",
    "vicuna*": "vicuna",
    "alpaca*": "alpaca",
    "tulu*": "tulu",
    "olmo*": "olmo",
    "falcon*": "falcon",
    "pythia*": "eleuther",
    "opt-[0-9]*": "opt",
    "bloom*": "bloom",
    "stablelm*": "stablelm",
    "internlm*": "internlm",
    "skywork*": "skywork",
    "auto-j*": "auto-j",
    "pandalm*": "pandalm",
    "athene*": "athene",
    "nemotron*": "nemotron",
    "granite*": "granite",
    "jamba*": "jamba",
    "minimax*": "minimax",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Families:
    """Globs of model names, lower case, and the family of each; the first that fits counts."""

    globs: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, extra: Mapping[str, str] | None = None, *, named: Iterable[str] = ()) -> Families:
        """Extend the built-in list.

        Parameters
        ----------
        extra
            Globs of a run file, in its order; they go before the built-in ones.
        named
            Families that judges of the run say they are of: each also stands for the models whose
            name begins with it, where no other glob fits.
        """
        own = {
            f"{family}*": family
            for family in sorted(set(named), key=lambda name: (-len(name), name))
        }
        parts = ((extra or {}), _GLOBS, own)
        return cls(
            globs=tuple((glob.lower(), family) for part in parts for glob, family in part.items())
        )

    def family(self, model: str) -> str:
        """Name the family of a model; one that fits no glob is a family by itself.

        The whole name is tried first, then its parts between slashes from the last to the first, so
        that `openai/gpt-4o` and `gpt-4/concise` are both found.
        """
        for name in _names(model.lower()):
            for glob, family in self.globs:
                if fnmatchcase(name, glob):
                    return family
        return model


BUILT_IN: Final = Families.of()
"""The families known without a run file."""


def families_of(config: RunConfig) -> Families:
    """Tell families as a run file says: its globs first, and the families its judges name."""
    return Families.of(config.families, named=[j.family for j in config.judges if j.family])


def judge_families(config: RunConfig) -> dict[str, str]:
    """Name each judge's family: as configured, else by its model, else by its name."""
    families = families_of(config)
    return {
        judge.name: judge.family
        or families.family(judge.model if isinstance(judge, WireJudge) else judge.name)
        for judge in config.judges
    }


def own_family_warnings(
    judges: Mapping[str, str], models: Iterable[str], families: Families = BUILT_IN
) -> list[str]:
    """Say which judges judge answers of their own family.

    Parameters
    ----------
    judges
        Name of each judge and its family.
    models
        Models that wrote answers, in any order.
    families
        How models are told.
    """
    by_family: dict[str, list[str]] = {}
    for model in sorted(set(models)):
        by_family.setdefault(families.family(model), []).append(model)
    return [
        f"judge {judge} is of the family {family}, and so are answers it judges "
        f"({', '.join(by_family[family])}): it may prefer them; see tables/self_preference.csv"
        for judge, family in judges.items()
        if family in by_family
    ]


def _names(model: str) -> Iterator[str]:
    yield model
    parts = [part for part in model.split("/") if part]
    if len(parts) > 1:
        yield from reversed(parts)
