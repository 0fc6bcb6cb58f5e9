"""Write all tables from a finished or stopped run directory, or from verdict records.

With plain Python:      python jobs/summarize.py RUN_DIR
On a Ray cluster:       ray job submit --working-dir . -- python jobs/summarize.py RUN_DIR

It asks nobody and uses no worker: on a cluster it only has to run where RUN_DIR can be reached.
"""

from __future__ import annotations

import sys

from judgebias.cli import leave, run_app


def main() -> int:
    """Summarise the sources named on the command line; options as for `judgebias summarize`."""
    code = run_app(["summarize", *sys.argv[1:]])
    sys.stderr.write(f"judgebias exit code {code}\n")
    return code


if __name__ == "__main__":
    leave(main())
