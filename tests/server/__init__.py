"""A provider on loopback that speaks both wires, follows a script, counts and bills.

`CountingServer` runs in a thread of the test, `ServerProcess` as a process of its own that
outlives a killed run. Both take the same `Setup`.
"""

from tests.server import faults
from tests.server.limiter import Limit
from tests.server.planted import Markers, Planted
from tests.server.process import ServerProcess
from tests.server.script import Action, Rule
from tests.server.server import CountingServer, Setup

__all__ = [
    "Action",
    "CountingServer",
    "Limit",
    "Markers",
    "Planted",
    "Rule",
    "ServerProcess",
    "Setup",
    "faults",
]
