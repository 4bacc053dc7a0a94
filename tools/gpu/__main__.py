"""Run the parts one after the other within nine minutes: ``python -m tools.gpu [PART ...]``.

Any CUDA device and any torch from 2.4 on will do; nothing is fetched. Missing packages are
installed from the wheels in ``--wheels``, where there are some. Table, JSON and the output of each
part are in ``--out``. Ends with 1 where a part failed or did not get to its end, with 2 where
nothing could be run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.gpu import report, wheels
from tools.gpu.parts import PARTS, ROOT, Part
from tools.gpu.report import Outcome
from tools.limited import run_limited

TOTAL_S = 9 * 60
"""Of all parts together; whatever is slow ends in time to look at the rest."""
LEAST_S = 5.0
"""With less time left a part is not begun."""
WHEELS = (ROOT / "wheels", ROOT / ".whl")
SITE = "site"


def run(parts: Sequence[Part], device: str, folder: Path, total_s: float) -> list[Outcome]:
    """Run parts until the time is over; table and JSON are written after each."""
    end = time.monotonic() + total_s
    environment = _environment(folder)
    outcomes: list[Outcome] = []
    for part in parts:
        left_s = end - time.monotonic()
        if left_s < LEAST_S:
            outcomes.append(Outcome(part.name, "no time left", 0.0))
            continue
        (folder / f"{part.name}.json").unlink(missing_ok=True)
        shutil.rmtree(folder / part.name, ignore_errors=True)  # of the run before
        output = folder / f"{part.name}.txt"
        command = part.command(device, folder)
        result, seconds = run_limited(command, output, min(part.limit_s, left_s), ROOT, environment)
        outcomes.append(Outcome(part.name, result, seconds, report.read(part.name, folder)))
        print(f"{part.name}: {result}, {seconds:.0f} s", flush=True)
        report.write(outcomes, folder)
    report.write(outcomes, folder)
    return outcomes


def _environment(folder: Path) -> Mapping[str, str]:
    paths = [str(ROOT), str(folder / SITE), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYTHONUNBUFFERED": "1",
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",  # without it nothing is deterministic
    }


def prepare(folder: Path, given: Path | None) -> list[str]:
    """Install what is missing from wheels, if there are any; return what is missing still."""
    site = folder / SITE
    sys.path.insert(0, str(site))
    if wheels.missing():
        wheels.install([given] if given is not None else [*WHEELS], site)
    return wheels.missing()


def main() -> int:
    """Run all parts, or those named."""
    parser = argparse.ArgumentParser(prog="make gpu", description=__doc__)
    about = "; ".join(f"{part.name}: {part.about}" for part in PARTS.values())
    parser.add_argument("parts", nargs="*", metavar="part", help=about)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda",
                        help="cpu checks the logic of every part with small sizes")  # fmt: skip
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "gpu")
    parser.add_argument("--wheels", type=Path, help="folder with wheels: wheels/ or .whl/")
    parser.add_argument("--seconds", type=float, default=TOTAL_S, help="of all parts together")
    asked = parser.parse_args()
    if unknown := {*asked.parts} - {*PARTS}:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; allowed: {', '.join(PARTS)}")
    started = time.monotonic()
    folder = asked.out.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if absent := prepare(folder, asked.wheels):
        print(f"missing: {', '.join(absent)}; --wheels names a folder with them", file=sys.stderr)
        return 2
    parts = [part for name, part in PARTS.items() if not asked.parts or name in asked.parts]
    outcomes = run(parts, asked.device, folder, asked.seconds - (time.monotonic() - started))
    print("\n" + report.table(outcomes))
    print(f"\n{folder / 'gpu.json'}")
    return int(report.failed(outcomes))


if __name__ == "__main__":
    sys.exit(main())
