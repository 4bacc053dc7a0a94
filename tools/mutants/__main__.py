"""Print changes that no test notices: ``python -m tools.mutants [--room ROOM] [--since COMMIT]``.

Each mutant is the project with one small change: another comparison, a constant and one, `and`
for `or`, a removed statement. The tests of its folder run until one fails. A mutant that survives
is printed with its place and the change: a test is missing, or the code does not matter.

mutmut and cosmic-ray do not fit this project: the first leaves out decorated functions, which all
quantities are; the second changes files of the working tree, and starts Python for every mutant.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from tools.affected import PACKAGE, ROOT, changed_since
from tools.mutants.edits import Mutant, mutants
from tools.mutants.trial import Copy, copied
from tools.tests_of import covering, room_of

CHOSEN = (
    "not (slow or browser or static or docs or stories or kernels or gpu or libraries or frontends"
    " or crash or readers or s3 or postgres or release)"
)


def main(arguments: list[str]) -> int:
    """Try all mutants that are asked for, and return how the program ends."""
    parser = argparse.ArgumentParser(prog="tools.mutants", description="Find untested code.")
    parser.add_argument("--room", help="mutate the files of a folder, e.g. record/write")
    parser.add_argument("--since", default="HEAD", help="mutate the files changed since a commit")
    parser.add_argument("--most", type=int, default=0, help="try this many, drawn at random")
    asked = parser.parse_args(arguments)
    files = [*(of_room(asked.room) if asked.room else changed(asked.since))]
    if not files:
        print(f"nothing in {PACKAGE}/ has changed since {asked.since}; --room names a folder")
        return 0
    found = [(file, one) for file in files for one in mutants((ROOT / file).read_text("utf-8"))]
    if asked.most and asked.most < len(found):
        found = sorted(
            Random(0).sample(found, asked.most), key=lambda pair: (pair[0], pair[1].line)
        )
    with copied(ROOT) as copy, TemporaryDirectory() as logs:
        return report(copy, found, Path(logs) / "log")


def of_room(room: str) -> Iterator[str]:
    """Yield the files of a folder of the package, or the one file of that name."""
    folder = ROOT / PACKAGE / room
    files = [folder.with_suffix(".py")] if folder.with_suffix(".py").exists() else []
    for path in files or sorted(folder.rglob("*.py")):
        yield path.relative_to(ROOT).as_posix()


def changed(commit: str) -> Iterator[str]:
    """Yield the files of the package that differ from a commit."""
    for file in sorted(changed_since(commit)):
        if file.startswith(PACKAGE) and file.endswith(".py") and (ROOT / file).exists():
            yield file


def report(copy: Copy, found: Iterable[tuple[str, Mutant]], log: Path) -> int:
    """Try mutants one after the other, and print those that survive."""
    limits = dict[str, float]()
    n_killed = n_survived = 0
    for file, mutant in found:
        tests = tests_for(file)
        if file not in limits:
            start = time.monotonic()
            if not copy.passes(tests, 600, log):
                print(f"{file}: its tests fail as it is\n{log.read_text('utf-8')[-2000:]}")
                return 1
            limits[file] = 10 + 4 * (time.monotonic() - start)
        copy.change(file, mutant.changed)
        survives = copy.passes(tests, limits[file], log)
        copy.change(file, mutant.original)
        n_survived += survives
        n_killed += not survives
        if survives:
            print(f"{file}:{mutant.line}: survived\n{mutant.diff(file)}\n", flush=True)
    print(f"{n_killed + n_survived} mutants: {n_killed} killed, {n_survived} survived")
    return 0


def tests_for(file: str) -> list[str]:
    """Return pytest's arguments: tests that import the file, tests of its folder, its doctests."""
    return [*covering(file), room_of(file), file, "-m", CHOSEN]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
