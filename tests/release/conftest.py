"""What is released of this checkout: its wheel and its source distribution."""

from __future__ import annotations

from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from tests.browser.conftest import browser, page

__all__ = ["browser", "page"]

ROOT = Path(__file__).parents[2]


def build_wheel(project: Path, folder: Path) -> Path:
    """The wheel that ``pip wheel`` makes of a project."""
    (wheel,) = WheelBuilder(str(project)).build(directory=str(folder), versions=["standard"])
    return Path(wheel)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the checkout."""
    return build_wheel(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its source distribution."""
    folder = tmp_path_factory.mktemp("sdist")
    (packed,) = SdistBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    return Path(packed)
