"""Making the judges that need no network: simulated, replay, function."""

from __future__ import annotations

from judgebias.config import FunctionJudge, ReplayJudge, SimulatedJudge
from judgebias.judges.function import FunctionCaller
from judgebias.judges.judge import Judge
from judgebias.judges.replay import Replay, load_recording
from judgebias.judges.simulated import Simulated


def open_local(config: SimulatedJudge | ReplayJudge | FunctionJudge, base: str) -> Judge:
    """Make a judge; relative paths start from `base`."""
    match config:
        case SimulatedJudge():
            return Simulated(config)
        case ReplayJudge():
            return Replay(load_recording(config, base))
        case FunctionJudge():
            return FunctionCaller(config, base)
