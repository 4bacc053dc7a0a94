"""The wheel in empty environments: all it depends on at its lowest, and at its newest.

Where pip finds no CPU build of torch it takes the one with CUDA: some gigabytes for each.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.release.environments import Environment, floors

pytestmark = [pytest.mark.release, pytest.mark.timeout(1800)]

SMOKE = Path(__file__).parent / "smoke.py"
IMPORTED = "import notebook_probe.explorer as e; e.Explorer; print('panel')"
BOUNDS = {"lowest": [*floors()], "newest": []}


@pytest.fixture(scope="module", params=BOUNDS)
def installed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, wheel: Path
) -> Environment:
    """The plain installation."""
    environment = Environment(tmp_path_factory.mktemp(request.param), BOUNDS[request.param])
    environment.install(str(wheel))
    return environment


def test_the_plain_installation_trains_records_reads_and_reports(installed: Environment) -> None:
    done = installed.run(str(SMOKE))
    assert done.returncode == 0, done.stderr
    assert "torch" in done.stdout


def test_with_the_extra_there_is_a_panel(installed: Environment, wheel: Path) -> None:
    installed.install(f"{wheel}[lab]")
    done = installed.run("-c", IMPORTED)
    assert (done.returncode, done.stdout) == (0, "panel\n"), done.stderr
