"""The commands, with the asking done in this process."""

from tests.cli.asking import asking

__all__ = ["asking"]
