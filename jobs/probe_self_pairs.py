r"""Show judges the same text in both slots, and write what they made of it.

With plain Python:      python jobs/probe_self_pairs.py RUN.toml --items 200
On a Ray cluster:
    ray job submit --working-dir . \
      --runtime-env-json '{"env_vars": {"RAY_JOB_STOP_WAIT_TIME_S": "65"}}' \
      -- python jobs/probe_self_pairs.py RUN.toml --yes

In a submitted job `out` of the run file is absolute or a URI that every node can reach. `ray job
stop` waits for the grace period of the run (60 s) and 5 s more. The same job again resumes. The
exit codes are those of `judgebias probe`; the last line names it.
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
