"""Comparison of other people's training programs with their watched twins, bit for bit.

Each runs twice in a separate process, from a fresh clone: as it is, and with every model that it
trains watched with the presets default and alerts. Losses, weights, buffers, optimizer states and
random generators must be equal. Alerts that fired are listed: healthy programs should raise none,
and those with a known mistake must raise that of its rule.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.programs.listing import PROGRAMS, REPLACED, Program
from benchmarks.table import Table

__all__ = ["add_arguments", "run"]

COMPARED = "backwards", "losses", "weights", "optimizers", "random"
COLUMNS = {"program": 20, "steps": 5, "equal": 26, "plain s": 7, "watched s": 9, "alerts": 20}
HERE = Path(__file__).parents[2]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--programs", nargs="*", default=list(PROGRAMS), choices=list(PROGRAMS))
    parser.add_argument("--backwards", type=int, default=200, help="after which each is ended")
    parser.add_argument("--limit", type=int, default=900, help="seconds for a program")
    parser.add_argument(
        "--source",
        default="https://github.com/{owner}/{name}",
        help="where repositories are cloned from; a folder of clones, for instance",
    )


def run(chosen: argparse.Namespace) -> None:
    """Print a line per program; end with an error if one differs or fails."""
    table, bad = Table(COLUMNS), []
    for name in chosen.programs:
        program = PROGRAMS[name]
        missing = [need for need in program.needs if importlib.util.find_spec(need) is None]
        if missing:
            table.row(name, "", f"needs {', '.join(missing)}")
            continue
        plain, watched = (_trial(program, chosen, watch) for watch in (False, True))
        if failed := plain.get("failed") or watched.get("failed"):
            bad.append(name)
            table.row(name, "", f"failed: {failed}")
            continue
        apart = [what for what in COMPARED if plain[what] != watched[what]]
        is_recorded = all(watched["steps"]) and watched["steps"]
        is_named = not program.mistake or program.mistake in watched["alerts"]
        if apart or not is_named or not (is_recorded or program.by_hand):
            bad.append(name)
        steps = " ".join(str(count) for count in watched["steps"])
        equal = f"apart: {', '.join(apart)}" if apart else f"yes, {plain['backwards']} backwards"
        seconds = (f"{trial['seconds']:.1f}" for trial in (plain, watched))
        table.row(name, steps, equal, *seconds, ", ".join(watched["alerts"]))
    if bad:
        sys.exit(f"not equal, not recorded, not named or failed: {', '.join(bad)}")


def _trial(program: Program, chosen: argparse.Namespace, watch: bool) -> dict[str, Any]:
    """Run a program in a fresh clone, and return its result or why there is none."""
    owner, _, name = program.repository.partition("/")
    with tempfile.TemporaryDirectory() as temporary:
        clone = Path(temporary) / name
        source = chosen.source.format(owner=owner, name=name)
        _git("clone", "--quiet", "--no-checkout", source, str(clone))
        _git(
            "-C", str(clone), "sparse-checkout", "set", "--no-cone", "/*", f"!{REPLACED}", "!*.gif"
        )
        _git("-C", str(clone), "checkout", "--quiet", program.commit)
        folder = clone / program.place
        program.prepare(folder)
        command = [sys.executable, "-m", "benchmarks.programs.trial"]
        backwards = min(chosen.backwards, program.most_backwards)
        command += ["--backwards", str(backwards), *(["--watch"] if watch else [])]
        command += [str(clone / program.script), *program.arguments.split()]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(HERE), str(clone)]),
            "OMP_NUM_THREADS": "1",
            "MPLBACKEND": "agg",
            "PYTHONHASHSEED": "0",  # some number their words in the order of a set
        }
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=chosen.limit,
            )
        except subprocess.TimeoutExpired:
            return {"failed": f"not ended after {chosen.limit} s"}
        if done.returncode:
            return {"failed": done.stderr.strip().rpartition("\n")[2]}
        result: dict[str, Any] = json.loads("{" + done.stdout.rpartition("\n{")[2])
        return result


def _git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], check=True, capture_output=True)
