"""A step that is captured in a CUDA graph only writes kernels down: nothing of it is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeAlias

import pytest
import torch

from notebook_probe.run.health.why_silent import CAPTURED
from tests.models import equal, floats, made, mlp, sgd, train_step
from tests.run.conftest import Watch

batch = floats(5, 4)


Capturing: TypeAlias = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def captured(monkeypatch: pytest.MonkeyPatch) -> Capturing:
    """A block in which CUDA says that it captures."""

    @contextmanager
    def capturing() -> Iterator[None]:
        with monkeypatch.context() as patch:
            patch.setattr(torch.cuda, "_initialized", True)
            patch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
            yield

    return capturing


def test_a_captured_step_is_neither_a_step_nor_measured_and_says_so(
    captured: Capturing, watch: Watch
) -> None:
    model, plain = made(mlp), made(mlp)
    run = watch(model, probes={"0": ["output_norm", "grad_norm"]})
    optimizers = sgd(model), sgd(plain)
    for step in range(4):
        for one, optimizer in zip((model, plain), optimizers, strict=True):
            if step in (1, 2):
                with captured():
                    train_step(one, optimizer, batch(step))
            else:
                train_step(one, optimizer, batch(step))
    assert equal(model, plain)
    data = run.data.load()
    assert data.step.values.tolist() == [0, 1], "two steps ran, one before and one after"
    assert data.output_norm.sel(module="0").notnull().all()
    assert run.status().errors == ()


def test_a_model_that_is_only_replayed_says_why_it_is_silent(
    captured: Capturing, watch: Watch
) -> None:
    model = made(mlp)
    run = watch(model, probes={"0": ["output_norm"]})
    with captured():
        train_step(model, sgd(model), batch(0))
    for _ in range(2):
        sgd(model).step()  # an update between two replays
    run.controls.settle()
    (probe,) = run.status().probes
    assert probe.note == CAPTURED


def test_a_process_without_cuda_is_never_asked(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked() -> bool:
        raise RuntimeError("no NVIDIA driver on your system")

    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", asked)
    model = made(mlp)
    run = watch(model, probes={"0": ["output_norm"]})
    optimizer = sgd(model)
    train_step(model, optimizer, batch(0))
    monkeypatch.setattr(torch.cuda, "_initialized", True)  # as in a child of a process with CUDA
    train_step(model, optimizer, batch(1))
    monkeypatch.undo()
    assert len(run.series("0", "output_norm")) == 2
