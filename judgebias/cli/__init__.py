"""The command line: the only place that wires the floors together."""

from judgebias.cli.app import app, main, run_app

__all__ = ["app", "main", "run_app"]
