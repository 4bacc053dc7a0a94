"""What the installed package is: quick to import, and honest about its names."""

import subprocess
import sys

import pytest

import notebook_probe as nbp

HEAVY = ("torch", "ipywidgets", "anywidget", "IPython", "matplotlib")
OF_RECORDS = ("numpy", "pandas", "xarray", "zarr")
"""Packages that take most of a second; needed once a record is opened or a model is watched."""


def modules_after(code: str) -> set[str]:
    """Names of the top-level modules a fresh process holds after running ``code``."""
    script = f"{code}\nimport sys\nprint(*(name for name in sys.modules if '.' not in name))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("name", "heavy"),
    [("notebook_probe", (*HEAVY, *OF_RECORDS)), ("notebook_probe.compare", HEAVY)],
    ids=["notebook_probe", "notebook_probe.compare"],
)
def test_importing_the_package_loads_nothing_heavy(name: str, heavy: tuple[str, ...]) -> None:
    assert modules_after(f"import {name}").isdisjoint(heavy)


def test_the_public_names_are_sorted_and_all_there() -> None:
    assert list(nbp.__all__) == sorted(nbp.__all__, key=lambda name: (not name.isupper(), name))
    assert all(getattr(nbp, name) is not None for name in nbp.__all__)
    assert set(nbp.__all__) <= set(dir(nbp))


def test_every_public_name_says_what_it_is() -> None:
    undocumented = [name for name in nbp.__all__ if not getattr(nbp, name).__doc__]
    assert undocumented == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="wtach"):
        _ = nbp.wtach
