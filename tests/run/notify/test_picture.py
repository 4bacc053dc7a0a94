"""The picture of a message shows the series of its alert, if there is one."""

from __future__ import annotations

import sys
from io import BytesIO

import pytest

from notebook_probe.run.notify.picture import picture_of
from tests.models import made, mlp
from tests.run.conftest import Watch, watch

__all__ = ["watch"]


@pytest.mark.slow
def test_a_series_is_drawn_up_to_the_step(watch: Watch) -> None:
    from matplotlib.image import imread

    run = watch(made(mlp), probes=None)
    for loss in (3.0, 2.0, float("nan"), 1.0):
        run.log(loss=loss)
        run.step()
    early, late = (picture_of(run, ("(root)", "loss"), step) for step in (1, 3))
    assert early is not None
    assert late is not None
    pixels = imread(BytesIO(late))
    assert pixels.shape[:2] == (200, 400)
    assert (pixels[..., :3] != 1).any(-1).mean() > 0.01
    assert early != late


def test_without_a_series_or_matplotlib_there_is_none(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = watch(made(mlp), probes=None)
    assert picture_of(run, None, 3) is None
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert picture_of(run, ("(root)", "loss"), 3) is None


@pytest.mark.slow
def test_a_fact_that_has_no_series_has_no_picture(watch: Watch) -> None:
    assert picture_of(watch(made(mlp), probes=None), ("(root)", "nothing"), 3) is None
