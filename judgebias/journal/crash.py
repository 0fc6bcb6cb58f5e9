"""The steps of the journal at which a test may kill the process."""

from judgebias.crash import crash_point

__all__ = ["crash_point"]
