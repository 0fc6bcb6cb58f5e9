"""The same work done in this process, to compare with."""

from tests.cli.asking import asking

__all__ = ["asking"]
