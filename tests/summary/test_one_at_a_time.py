"""One collector follows a run, and a collector one training: cells run again pile nothing up."""

from pathlib import Path

import pytest
import torch

import notebook_probe as nbp
from tests.summary.conftest import Collect, a_loop, images, steps_of

FREQ = 3


def trained_again(collector: Collect, run: nbp.Run, model: torch.nn.Module) -> nbp.SummaryCollector:
    """The cell of a notebook: a loop and a collector of its own, on the run that is there."""
    loop, one = a_loop(model), collector(collect_freq=FREQ)
    loop.add(one)
    loop.run_steps(images(5), 5)
    assert one.run is run
    return one


def test_a_cell_that_is_run_again_replaces_the_collector_of_the_time_before(
    collector: Collect, tmp_path: Path
) -> None:
    model = a_loop().trainer.model
    with nbp.watch(model, store=tmp_path / "own.zarr", probes=None) as run:
        first = trained_again(collector, run, model)
        n_hooks, n_probes = len(model._forward_pre_hooks), len(run.probes())
        for _ in range(2):  # what is replaced in the record would warn, which is an error here
            trained_again(collector, run, model)
            assert len(model._forward_pre_hooks) == n_hooks
            assert len([one for one in run.probes() if one.attached_step]) == n_probes
        assert first.run is None
        for name, module in (("input_image", ""), ("param_histogram", "conv.weight")):
            assert steps_of(run, name, module) == [0, 2, 5, 7, 10, 12]  # units 1 and 3 of each


def test_a_loop_whose_collector_gave_way_has_it_again_when_it_goes_on(
    collector: Collect, tmp_path: Path
) -> None:
    model = a_loop().trainer.model
    with nbp.watch(model, store=tmp_path / "own.zarr", probes=None) as run:
        loop, one = a_loop(model), collector(collect_freq=FREQ)
        loop.add(one)
        loop.run_steps(images(5), 5)
        trained_again(collector, run, model)
        assert one.run is None
        loop.run_steps(images(5), 5)
        assert one.run is run
        # Units 1, 3 | 1, 3 of the other | 6, the first seen, and 9.
        assert steps_of(run, "input_image") == [0, 2, 5, 7, 10, 13]


@pytest.mark.parametrize("by_loop", [True, False])
def test_another_training_has_all_that_the_first_one_had(
    collector: Collect, tmp_path: Path, by_loop: bool
) -> None:
    one = collector(collect_freq=FREQ, custom_lineage_data={"lr": 0.01})
    for place in ("first", "second"):
        loop, data = a_loop(), images(5)
        with nbp.watch(loop.trainer.model, store=tmp_path / f"{place}.zarr", probes=None) as run:
            if by_loop:
                loop.add(one)
                loop.run_steps(data, 5)
            else:
                with one.attach(run, data=data):
                    loop.run_steps(data, 5)
        opened = nbp.open_run(tmp_path / f"{place}.zarr")
        assert opened.graph().how == "exported"
        assert opened.dataset_graph().root.length == 5
        assert opened.lineage()["custom"] == {"lr": 0.01}
        assert opened.series("", "input_image").step.values.tolist() == [0, 2]
        assert opened.series("conv.weight", "param_histogram").step.values.tolist() == [0, 2]


def test_a_loops_collector_beside_one_that_is_attached_is_refused_before_a_step(
    collector: Collect, tmp_path: Path
) -> None:
    loop, one = a_loop(), collector()
    with nbp.watch(loop.trainer.model, store=tmp_path / "own.zarr", probes=None) as run:
        following = one.attach(run)
        loop.add(collector())
        with pytest.raises(nbp.HookError, match="another collector follows this run"):
            loop.run_steps(images(2), 2)
        assert loop.loop_step == 0
        following.remove()
        loop.run_steps(images(2), 2)
        assert loop.loop_step == 2


def test_a_collector_that_is_attached_is_no_loops_as_well(
    collector: Collect, tmp_path: Path
) -> None:
    loop, one, other = a_loop(), collector(), a_loop()
    with (
        nbp.watch(other.trainer.model, store=tmp_path / "own.zarr", probes=None) as run,
        one.attach(run),
    ):
        loop.add(one)
        with pytest.raises(nbp.HookError, match="this collector follows a training already"):
            loop.run_steps(images(2), 2)
        assert one.run is run
