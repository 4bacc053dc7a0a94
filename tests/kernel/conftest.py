"""Real kernels: the one of this environment, and others from environments of their own.

``python tools/kernel_envs.py`` makes the others; ``pytest -m kernels tests/kernel`` uses them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.kernel.front_end import ROOT, FrontEnd

OTHER_VERSIONS = ("6.31", "7.3")


def kernel_python(version: str) -> Path:
    """The interpreter that has this ipykernel; a missing one fails and says how to get it."""
    folder = ROOT / f".venv-ipykernel-{version}"
    places = (folder / "bin/python", folder / "Scripts/python.exe")
    found = next((path for path in places if path.exists()), None)
    if found is None:
        pytest.fail(f"no {folder.name}: run `python tools/kernel_envs.py` first")
    return found


@pytest.fixture(
    scope="package",
    params=["installed", *(pytest.param(v, marks=pytest.mark.kernels) for v in OTHER_VERSIONS)],
)
def front_end(request: pytest.FixtureRequest) -> Iterator[FrontEnd]:
    """A front end with a kernel that has imported the fake panel."""
    installed = request.param == "installed"
    end = FrontEnd(Path(sys.executable) if installed else kernel_python(request.param))
    end.run("from tests.kernel.fake_panel import *")
    yield end
    end.close()


@pytest.fixture
def new_panel(front_end: FrontEnd) -> Iterator[Callable[[str], tuple[str, str]]]:
    """Makes fake panels: ``new_panel("carried=False")`` returns its name and its comm's id."""
    numbers = count()
    names = []

    def make(arguments: str = "") -> tuple[str, str]:
        names.append(name := f"panel_{next(numbers)}")
        made = front_end.run(f"{name} = FakePanel({arguments}); print({name}.comm.comm_id)")
        return name, made.strip()

    yield make
    front_end.run("\n".join(f"kernel_route().forget({n}.comm); {n}.comm.close()" for n in names))
