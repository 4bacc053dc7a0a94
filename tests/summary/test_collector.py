"""The collector in a loop: what is in the record afterwards, and at which steps."""

from pathlib import Path

import pytest
import torch

import notebook_probe as nbp
from notebook_probe.train import Dataset
from tests.summary.conftest import Collect, a_loop, images, steps_of


def due(first: int, last: int, freq: int) -> list[int]:
    """Steps of the units from ``first`` on, written out."""
    units = range(first, last + 1)
    return [unit - 1 for unit in units if unit == first or unit % freq == 0]


def test_everything_lies_at_the_due_steps_of_one_record(collector: Collect) -> None:
    loop, one = a_loop(), collector(collect_freq=3)
    loop.add(one)
    loop.run_epochs(images(5), 4)
    assert loop.run is one.run
    assert one.run is not None
    for name, module in (("loss", ""), ("input_image", ""), ("param_histogram", "conv.weight")):
        assert steps_of(one.run, name, module) == due(1, 20, 3)


def test_a_due_unit_that_ends_an_epoch_is_collected_once(collector: Collect) -> None:
    loop, one = a_loop(), collector(collect_freq=5)
    loop.add(one)
    loop.run_epochs(images(5), 3)  # a repeated one would warn, which is an error here
    assert one.run is not None
    assert steps_of(one.run, "loss") == [0, 4, 9, 14]


def test_a_second_run_of_the_loop_goes_on_counting(collector: Collect) -> None:
    loop, one, data = a_loop(), collector(collect_freq=4), Dataset(images(20))
    loop.add(one)
    for n in (3, 6, 5):
        loop.run_steps(data, n)
    assert one.run is not None
    assert steps_of(one.run, "loss") == due(1, 14, 4)


def test_it_collects_into_the_run_that_watches_the_model(
    collector: Collect, tmp_path: Path
) -> None:
    loop, one = a_loop(), collector(collect_freq=3)
    run = loop.watch(store=tmp_path / "own.zarr", probes=None)
    loop.add(one)
    loop.run_steps(images(7), 7)
    assert one.run is run
    assert steps_of(run, "loss") == [*range(7)]  # the loop records it at every step itself
    assert steps_of(run, "input_image") == due(1, 7, 3)
    assert not (tmp_path / "summary" / "record.zarr").exists()


def test_two_of_them_on_a_loop_are_refused_as_it_starts(collector: Collect) -> None:
    loop, data = a_loop(), images(2)
    loop.add(collector())
    loop.add(collector())
    with pytest.raises(ValueError, match="2 of SummaryCollector"):
        loop.run_epochs(data, 1)
    assert loop.loop_step == 0


def test_epochs_can_be_what_is_counted(collector: Collect) -> None:
    loop, one = a_loop(), collector(collect_freq=2, unit="epoch")
    loop.add(one)
    loop.run_epochs(images(3), 5)
    assert one.run is not None
    for name, module in (("loss", ""), ("input_image", ""), ("param_histogram", "fc.bias")):
        assert steps_of(one.run, name, module) == [2, 5, 11]  # epochs 1, 2, 4


def test_the_weights_come_out_equal_bit_for_bit(collector: Collect) -> None:
    plain, collected = a_loop(), a_loop()
    collected.add(collector(collect_freq=1))
    for loop in (plain, collected):
        torch.manual_seed(1)
        loop.run_epochs(images(4), 2)
    pairs = zip(plain.trainer.model.parameters(), collected.trainer.model.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)


def test_a_loop_of_ones_own_is_followed(collector: Collect, tmp_path: Path) -> None:
    loop, one = a_loop(), collector(collect_freq=4)
    model, optimizer = loop.trainer.model, loop.trainer.optimizer
    with nbp.watch(model, optimizer, store=tmp_path / "own.zarr", probes=None) as run:
        following = one.attach(run)
        for x, y in images(9):
            loss = torch.nn.functional.cross_entropy(model(x), y)
            following.metric(loss)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        for name, module in (("loss", ""), ("input_image", ""), ("weight_max", "fc.weight")):
            assert steps_of(run, name, module) == due(1, 9, 4)
