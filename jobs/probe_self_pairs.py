"""Show judges the same text in both slots, and write what they made of it.

With plain Python:      python jobs/probe_self_pairs.py RUN.toml --items 200
On a Ray cluster:
    ray job submit --working-dir . -- python jobs/probe_self_pairs.py RUN.toml --yes

In a submitted job `out` of the run file is absolute or a URI that every node can reach. The same
job again resumes. The exit codes are those of `judgebias probe`; the last line names it.
"""

from __future__ import annotations

import sys

from judgebias.cli import leave, run_app


def main() -> int:
    """Probe by the run file named on the command line; options as for `judgebias probe`."""
    code = run_app(["probe", *sys.argv[1:]])
    sys.stderr.write(f"judgebias exit code {code}\n")
    return code


if __name__ == "__main__":
    leave(main())
