"""Templates in, prompts out: what a judge is shown, and nothing that could tell it the answer."""

from judgebias.prompts.form import VerdictForm, instruction
from judgebias.prompts.load import BUILT_IN, load_template
from judgebias.prompts.template import Prompt, Template

__all__ = ["BUILT_IN", "Prompt", "Template", "VerdictForm", "instruction", "load_template"]
