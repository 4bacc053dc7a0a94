"""The page on GPUs: its code runs, and its figures are those of the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.running import DOCS, READERS_OWN, run_page
from tests.probes.reading import test_grouped_reductions as grouped
from tests.run.accelerator import Accelerator
from tests.run.programs import Programs

PAGE = "explanation/on_a_gpu.md"
TABLE = "| layers | values | kernels of the step | of the copy to the host, per half second |"


@pytest.mark.slow
def test_the_code_of_the_page_runs(programs: Programs, tmp_path: Path) -> None:
    after = 'assert "output_norm" in nbp.open_run(run.location).data'
    run_page(PAGE, programs, tmp_path, before=READERS_OWN, after=after)


@pytest.mark.slow
def test_the_kernels_on_the_page_are_those_that_are_launched(
    accelerator: Accelerator, tmp_path: Path
) -> None:
    lines = (DOCS / PAGE).read_text("utf-8").partition(TABLE)[2].splitlines()[2:4]
    said = [[int(cell) for cell in line.strip("| ").split("|")] for line in lines]
    told = [accelerator.run(grouped.asked, tmp_path / str(n), n, "default") for n in (4, 16)]
    found = [[n, one["values"], one["more"]] for n, one in zip((4, 16), told, strict=True)]
    assert [row[:3] for row in said] == found
    for (*_, flush), one in zip(said, told, strict=True):
        assert one["flush"] <= flush
