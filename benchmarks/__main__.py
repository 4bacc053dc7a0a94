"""``python -m benchmarks [NAME ...]``: prints what was measured on this machine, now."""

from __future__ import annotations

import sys

from benchmarks import explorer_refresh, step_time

BENCHMARKS = {"step_time": step_time.run, "explorer_refresh": explorer_refresh.run}


def main(names: list[str]) -> None:
    """Run the named benchmarks, all when none is named."""
    unknown = set(names) - set(BENCHMARKS)
    if unknown:
        sys.exit(f"no benchmark {', '.join(unknown)}; known: {', '.join(BENCHMARKS)}")
    for name in names or BENCHMARKS:
        BENCHMARKS[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
