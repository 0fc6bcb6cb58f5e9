"""`python -m tests.server`: the counting server as a process of its own."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
from pathlib import Path
from typing import Any, cast

from tests.server.limiter import Limit
from tests.server.planted import Markers, Planted
from tests.server.script import rules_from_json
from tests.server.server import Front, Setup, new_event_loop


def main() -> None:
    """Serve until SIGTERM, SIGINT or `POST /_stop`."""
    parser = argparse.ArgumentParser(prog="python -m tests.server", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", type=Path, help="gets the port once the server listens")
    parser.add_argument("--log", type=Path, help="JSONL, one line a request, appended")
    parser.add_argument("--setup", default="{}", help="JSON, as `setup_to_json` writes it")
    options = parser.parse_args()
    setup = setup_from_json(options.setup, options.log)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_serve(setup, options.port, options.port_file))


async def _serve(setup: Setup, port: int, port_file: Path | None) -> None:
    front = Front(setup, port)
    await front.open()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, front.closing.set)
    if port_file is not None:
        _announce(port_file, front.port)
    await front.closing.wait()
    await front.close()


def _announce(port_file: Path, port: int) -> None:
    # A reader must never see the file without its number.
    partial = port_file.with_name(port_file.name + ".partial")
    partial.write_text(str(port))
    partial.replace(port_file)


def setup_from_json(text: str, log: Path | None) -> Setup:
    """Read what `setup_to_json` wrote."""
    given = cast("dict[str, Any]", json.loads(text))  # the fields' types are the sender's
    return Setup(
        judges={glob: Planted(**row) for glob, row in given.get("judges", {"*": {}}).items()},
        extract=Markers(**given.get("extract", {})),
        rules=tuple(rules_from_json(json.dumps(given.get("rules", [])))),
        limits={glob: Limit(**row) for glob, row in given.get("limits", {}).items()},
        keys=frozenset(given.get("keys", ())),
        latency_s=given.get("latency_s", 0.0),
        clock_skew_s=given.get("clock_skew_s", 0.0),
        log=log,
    )


if __name__ == "__main__":
    main()
