"""Opening a judge: the one place that knows every provider.

A vendor's SDK takes a second to import, so only the one that is asked for is imported, here and
nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from judgebias.config import WireJudge
from judgebias.judges.gate import Gate
from judgebias.judges.secrets import Secret
from judgebias.judges.wire_form import WireForm
from judgebias.prompts import Template

if TYPE_CHECKING:  # it imports aiohttp, which a run without judges on the wire does not need
    from judgebias.judges.asker import Asker


def open_judge(
    config: WireJudge,
    template: Template,
    key: Secret,
    *,
    window: int,
    gate: Gate | None = None,
    form: WireForm | None = None,
) -> Asker:
    """Open a judge behind an HTTP interface.

    Parameters
    ----------
    config
        The judge.
    template
        Its template, loaded and checked.
    key
        Its key, as `read_key` gives it in the process that asks.
    window
        Calls in flight at most; the pool of connections has this size.
    gate
        Shares limits with other processes; None = a pause shared by this judge's calls.
    form
        The verdict form that the run has settled on; None = the first call settles it.
    """
    if config.provider == "openai":
        from judgebias.judges import openai

        client = openai.open_client(config, key, window)
        return openai.OpenAIJudge(config, template, key, client, gate=gate, form=form)
    from judgebias.judges import anthropic

    messages = anthropic.open_client(config, key, window)
    return anthropic.AnthropicJudge(config, template, key, messages, gate=gate, form=form)
