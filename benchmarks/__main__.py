"""``python -m benchmarks [NAME [options]]``: prints what was measured on this machine, now."""

from __future__ import annotations

import argparse
import sys

from benchmarks import (
    alerts,
    attach_all,
    budget,
    catalogue,
    compare,
    compiled,
    explorer_clicks,
    explorer_refresh,
    good_runs,
    gpu,
    graphs,
    growth,
    honest,
    idle,
    lineage,
    loop,
    memory,
    panel,
    programs,
    quantities,
    record,
    reductions,
    rules,
    step_time,
    summary,
    threads,
)

BENCHMARKS = {
    "step_time": step_time,
    "idle": idle,
    "memory": memory,
    "panel": panel,
    "quantities": quantities,
    "reductions": reductions,
    "record": record,
    "explorer_clicks": explorer_clicks,
    "explorer_refresh": explorer_refresh,
    "alerts": alerts,
    "rules": rules,
    "attach_all": attach_all,
    "budget": budget,
    "honest": honest,
    "growth": growth,
    "compare": compare,
    "loop": loop,
    "summary": summary,
    "lineage": lineage,
    "catalogue": catalogue,
    "threads": threads,
}
ELSEWHERE = {
    "gpu": gpu,
    "graphs": graphs,
    "programs": programs,
    "good_runs": good_runs,
    "compiled": compiled,
}
"""Benchmarks that run only if they are named: they need another environment, or minutes."""


def main(arguments: list[str]) -> None:
    """Run the named benchmark, or all, each as it is by default, when none is named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    names = parser.add_subparsers(metavar="NAME")
    for name, benchmark in (BENCHMARKS | ELSEWHERE).items():
        summary = (benchmark.__doc__ or "").splitlines()[0]
        options = names.add_parser(name, help=summary, description=benchmark.__doc__)
        benchmark.add_arguments(options)
        options.set_defaults(run=benchmark.run)
    for line in [arguments] if arguments else [[name] for name in BENCHMARKS]:
        chosen = parser.parse_args(line)
        chosen.run(chosen)


if __name__ == "__main__":
    main(sys.argv[1:])
