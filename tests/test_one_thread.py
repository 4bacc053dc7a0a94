"""numpy's BLAS has one thread while anybody is inside, and then as many as before."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from notebook_probe.one_thread import _own_of_numpy, one_thread
from notebook_probe.quantities.reduce import solvers
from notebook_probe.quantities.reduce.measure import ROW, measure

LIBRARIES = _own_of_numpy().lib_controllers
PARTS = frozenset({"sumsq", "moments"})
pytestmark = pytest.mark.skipif(not LIBRARIES, reason="this numpy has another BLAS")


def n_threads() -> set[int]:
    return {library.num_threads for library in LIBRARIES}


@pytest.fixture(autouse=True)
def two() -> Iterator[None]:
    """Two threads, as on a machine of two cores."""
    with _own_of_numpy().limit(limits=2):
        yield


def test_inside_there_is_one_and_then_as_many_as_before() -> None:
    assert n_threads() == {2}
    with one_thread():
        assert n_threads() == {1}
        with one_thread():
            assert n_threads() == {1}
        assert n_threads() == {1}
    assert n_threads() == {2}


def test_also_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), one_thread():
        raise ZeroDivisionError("on purpose")
    assert n_threads() == {2}


def test_a_second_thread_leaves_it_as_the_first_has_set_it() -> None:
    is_in, may_leave = threading.Event(), threading.Event()

    def stay() -> None:
        with one_thread():
            is_in.set()
            may_leave.wait(60)

    other = threading.Thread(target=stay)
    with one_thread():
        other.start()
        assert is_in.wait(60)
        assert n_threads() == {1}
    assert n_threads() == {2}
    may_leave.set()
    other.join()
    assert n_threads() == {2}
    with one_thread():
        assert n_threads() == {1}


@pytest.mark.parametrize("name", ["eigvalsh", "eigh"])
def test_decompositions_are_made_inside(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[int] = set()
    original: Callable[..., Any] = getattr(np.linalg, name)

    def spy(*args: Any) -> Any:
        seen.update(n_threads())
        return original(*args)

    monkeypatch.setattr(np.linalg, name, spy)
    matrix = torch.diag(torch.arange(300.0, dtype=torch.float64))
    solve = {"eigvalsh": solvers.eigvalsh, "eigh": solvers.largest_eigenvalue}[name]
    solve(matrix)
    assert seen == {1}
    assert n_threads() == {2}


@pytest.mark.parametrize("special", [None, float("nan"), 1e30], ids=["far mean", "nan", "huge"])
def test_no_sum_is_so_long_that_it_would_wake_a_thread(
    special: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BLAS shares out dot products of 10,000 elements and more."""
    lengths: list[int] = []
    original = np.vecdot

    def spy(one: Any, other: Any) -> Any:
        lengths.append(one.shape[-1])
        return original(one, other)

    monkeypatch.setattr(np, "vecdot", spy)
    values = 100.0 + torch.rand(20 * ROW, generator=torch.Generator().manual_seed(0))
    if special is not None:
        values[7] = special
    found = measure(values, PARTS)
    wide = values.double()
    assert len(lengths) >= 2, "the sum of squares, and what is read again"
    assert set(lengths) == {ROW}
    assert found.sumsq == pytest.approx(float(wide.square().sum()), rel=1e-6, nan_ok=True)
    assert found.mean == pytest.approx(float(wide.mean()), rel=1e-6, nan_ok=True)
