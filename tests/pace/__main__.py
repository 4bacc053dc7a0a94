"""Mark cases slow: ``python -m tests.pace``, after a run with ``--pace=check``.

``python -m tests.pace --renew`` measures every listed case and takes off the list what is fast.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.pace.plugin import SLOW_S, measured
from tests.pace.slow_list import FOUND, MARKED, read, write

ROOT = Path(__file__).parents[2]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.pace", description=__doc__)
    parser.add_argument("--renew", action="store_true", help="measure the listed cases again")
    parser.add_argument("case", nargs="*", help="cases to measure; those of the last run if none")
    given = parser.parse_args()
    listed = read(ROOT / MARKED)
    asked = given.case or sorted(listed if given.renew else read(ROOT / FOUND))
    if not asked:
        print("no case to measure: run `make test` first")
        return
    seconds = measured(asked, ROOT)
    slow = {case for case, took in seconds.items() if took >= SLOW_S}
    write(slow if given.renew else listed | slow, ROOT / MARKED)
    for case in sorted(seconds, key=lambda case: -seconds[case]):
        print(f"{seconds[case]:6.2f} s  {'slow' if case in slow else '    '}  {case}")


if __name__ == "__main__":
    main()
