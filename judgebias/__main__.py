"""The command `judgebias`, which may be interrupted before all of it is read."""

from __future__ import annotations

import sys


def main() -> None:
    """Read the command line and do what it says; never returns."""
    try:
        from judgebias.cli import main as command
    except KeyboardInterrupt:
        sys.stderr.write("interrupted: nothing was begun\n")
        sys.exit(130)
    command()


if __name__ == "__main__":
    main()
