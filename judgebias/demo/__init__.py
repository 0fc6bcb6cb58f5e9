"""Bundled pairs and planted judges for `judgebias demo`."""

from judgebias.demo.judges import PLANTED, Planted, demo_config

__all__ = ["PLANTED", "Planted", "demo_config"]
