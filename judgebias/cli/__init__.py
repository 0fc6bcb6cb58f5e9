"""The command line: the only place that wires the floors together."""

from judgebias.cli.app import app, leave, main, run_app

__all__ = ["app", "leave", "main", "run_app"]
