"""A front end with a real kernel, and fake panels inside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from tests.kernel.environments import KERNELS, interpreter
from tests.kernel.front_end import FrontEnd


@pytest.fixture(scope="package", params=KERNELS)
def front_end(request: pytest.FixtureRequest) -> Iterator[FrontEnd]:
    """A front end with a kernel that has imported the fake panel."""
    end = FrontEnd(interpreter(request.param))
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
