"""The run file: checked when made, unknown keys refused, nothing secret inside."""

from judgebias.config.judge import (
    FunctionJudge,
    JudgeConfig,
    Price,
    ReplayJudge,
    SimulatedJudge,
    WireJudge,
    fingerprint,
    identity,
)
from judgebias.config.run import Budget, Engine, Panel, RunConfig, Stop
from judgebias.config.runfile import load_run_file

__all__ = [
    "Budget",
    "Engine",
    "FunctionJudge",
    "JudgeConfig",
    "Panel",
    "Price",
    "ReplayJudge",
    "RunConfig",
    "SimulatedJudge",
    "Stop",
    "WireJudge",
    "fingerprint",
    "identity",
    "load_run_file",
]
