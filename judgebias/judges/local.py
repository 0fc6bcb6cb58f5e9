"""Making the judges that need no network: simulated, replay, function."""

from __future__ import annotations

from judgebias.config import FunctionJudge, ReplayJudge, SimulatedJudge
from judgebias.judges.free import FreeJudge
from judgebias.judges.function import FunctionCaller
from judgebias.judges.judge import Judge
from judgebias.judges.replay import Replay, load_recording
from judgebias.judges.simulated import Simulated


def open_local(config: SimulatedJudge | ReplayJudge | FunctionJudge, base: str) -> Judge:
    """Make a judge; relative paths start from `base`."""
    judge, price = _open(config, base), config.price
    free = price is not None and not (price.input or price.output)
    return FreeJudge(judge) if free else judge


def _open(config: SimulatedJudge | ReplayJudge | FunctionJudge, base: str) -> Judge:
    match config:
        case SimulatedJudge():
            return Simulated(config)
        case ReplayJudge():
            return Replay(load_recording(config, base))
        case FunctionJudge():
            return FunctionCaller(config, base)
