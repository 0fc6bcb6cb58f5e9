"""Making any judge from its configuration, in the process that will ask it."""

from __future__ import annotations

import os
from pathlib import Path

from judgebias.config import JudgeConfig, WireJudge
from judgebias.judges.gate import Gate
from judgebias.judges.judge import Judge
from judgebias.judges.local import open_local
from judgebias.judges.open_judge import open_judge
from judgebias.judges.secrets import endpoint, read_key
from judgebias.judges.wire_form import WireForm
from judgebias.progress import FormData
from judgebias.prompts import Template, load_template


def open_any(
    config: JudgeConfig,
    base: str,
    *,
    window: int,
    form: FormData | None,
    gate: Gate | None = None,
) -> Judge:
    """Make a judge; its key is read here and nowhere else.

    Parameters
    ----------
    config
        The judge as configured.
    base
        The folder that relative paths start from.
    window
        Calls under way at most; the pool of connections has this size.
    form
        The verdict form the run has settled on; None = the first call settles it.
    gate
        What a judge on the wire shares its limit through; None = a pause of its own.
    """
    if not isinstance(config, WireJudge):
        return open_local(config, base)
    key = read_key(config, os.environ, Path(base))
    known = None if form is None else WireForm.from_json(form)
    return open_judge(config, template_of(config, base), key, window=window, gate=gate, form=known)


def template_of(config: WireJudge, base: str) -> Template:
    """Load the template and rubric that a judge is asked with."""
    return load_template(config.template, config.rubric, config.criteria, Path(base))


def said_by_wire(config: WireJudge, base: str) -> tuple[str, str]:
    """Give what belongs to a wire judge's identity: its whole template text, and its endpoint."""
    return template_of(config, base).text, endpoint(config)
