"""judgebias tells which LLM judges can be believed: both orders, exact tests, at scale on Ray."""

from judgebias.config import RunConfig
from judgebias.errors import JudgebiasError
from judgebias.stats.binomial import sign_test_p
from judgebias.textbook import position_bias_report

__all__ = ["JudgebiasError", "RunConfig", "position_bias_report", "sign_test_p"]
