"""The collector in a loop: what is in the record afterwards, and at which steps."""

import contextlib
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset

import notebook_probe as nbp
from notebook_probe.errors import RecordWarning, RecordWriteError
from notebook_probe.summary.budget import ByteCounter
from notebook_probe.summary.items.input_images import InputImageItem
from notebook_probe.summary.moment import Moment
from notebook_probe.train import Checkpoints, Dataset, Loop
from tests.summary.conftest import Collect, Pairs, a_loop, images, steps_of


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


class Stream(IterableDataset[tuple[Tensor, Tensor]]):
    """Of which nobody knows how long it is."""

    def __init__(self, batches: Pairs) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        return iter(self._batches)


@pytest.mark.parametrize("is_watched", [True, False])
def test_an_epoch_whose_end_nobody_foresaw_has_its_loss_at_its_own_last_step(
    collector: Collect, tmp_path: Path, is_watched: bool
) -> None:
    loop, one, losses = a_loop(), collector(unit="epoch", collect_freq=2), []
    if is_watched:
        loop.watch(store=tmp_path / "own.zarr", probes=None, metrics=False)
    loop.add(one)
    loop.on_step(lambda loop, metrics: losses.append(float(metrics["loss"])))
    loop.run_epochs(DataLoader(Stream(images(3)), batch_size=None), 4)
    assert one.run is not None
    assert steps_of(one.run, "loss") == [2, 5, 11]
    assert one.run.series("", "loss").values.tolist() == pytest.approx(
        [losses[step] for step in (2, 5, 11)], rel=1e-7
    )
    assert steps_of(one.run, "input_image") == [5, 11]  # from there on an epoch's length is known


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


def test_a_stream_ends_with_the_first_block_that_has_no_room_and_the_others_go_on(
    collector: Collect,
) -> None:
    picture = 4 * 6 * 24 * 3 + 16  # bytes of one block
    loop, one = a_loop(), collector(collect_freq=1, max_file_size=2 * picture)
    loop.add(one)
    with pytest.warns(RecordWarning, match="nothing more is collected of") as told:
        loop.run_steps(images(9), 9)
    assert one.run is not None
    assert steps_of(one.run, "input_image") == [0, 1]
    assert steps_of(one.run, "loss") == [*range(9)]
    row = 4 * 4 * (90 + 6) + 16
    n_rows = 2 * picture // row
    assert steps_of(one.run, "param_histogram", "fc.bias") == [*range(n_rows)]
    ended = {str(warning.message).split("'")[1] for warning in told}
    assert len(told) == 2
    assert ended == {"input_image", "param_histogram"}


@given(
    most=st.none() | st.integers(1, 300),
    free=st.integers(1, 9000),
    blocks=st.lists(st.integers(0, 60), max_size=30),
)
def test_what_a_stream_takes_is_what_the_rule_says(
    most: int | None, free: int, blocks: list[int]
) -> None:
    budget = ByteCounter(most, lambda: free)
    used, has_ended, expected = 0, False, []
    for block in blocks:
        size = block + 16
        has_ended = has_ended or (most is not None and used + size > most) or size > free / 32
        used += 0 if has_ended else size
        expected.append(not has_ended)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert [budget.takes("one", block) for block in blocks] == expected
    assert len(told) == has_ended
    assert budget.used("one") == used


def test_an_item_that_fails_is_told_of_once_and_the_training_goes_on(
    collector: Collect, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def fail(self: InputImageItem, moment: Moment) -> None:
        calls.append(moment.step)
        raise RuntimeError("no such luck")

    monkeypatch.setattr(InputImageItem, "collect", fail)
    loop, one = a_loop(), collector(collect_freq=1)
    loop.add(one)
    with pytest.warns(RecordWarning, match="collect_input_data is off for this training: no such"):
        loop.run_steps(images(4), 4)
    assert calls == [0]
    assert loop.loop_step == 4
    assert one.run is not None
    assert steps_of(one.run, "loss") == [0, 1, 2, 3]


def test_a_record_that_goes_amid_the_training_is_no_end_of_it(
    collector: Collect, tmp_path: Path
) -> None:
    loop, one = a_loop(), collector(collect_freq=1)
    loop.add(one)

    def remove(loop: Loop, metrics: object) -> None:
        if loop.loop_step == 2:
            shutil.rmtree(tmp_path / "summary")

    loop.on_step(remove)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecordWarning)
        with contextlib.suppress(RecordWriteError):
            loop.run_steps(images(6), 6)
        assert loop.loop_step == 6
        assert one.run is not None
        with contextlib.suppress(RecordWriteError):
            one.run.close()


@pytest.mark.slow
def test_a_training_that_goes_on_from_a_checkpoint_counts_as_if_it_had_never_ended(
    collector: Collect, tmp_path: Path
) -> None:
    loop, one = a_loop(), collector(collect_freq=4)
    loop.add(one)
    loop.run_epochs(images(6), 1)
    loop.save_checkpoint(tmp_path / "checkpoints")
    assert one.run is not None
    first = one.run.location
    one.run.close()
    resumed, other = a_loop(), collector(collect_freq=4)
    resumed.add(other)
    resumed.load_checkpoint(tmp_path / "checkpoints")
    resumed.run_epochs(images(6), 2)
    assert other.run is not None
    assert other.run.location == first
    assert steps_of(other.run, "input_image") == [0, 3, 6, 7, 11]  # 6: the first seen again


def test_a_training_begun_anew_has_a_record_of_its_own(collector: Collect, tmp_path: Path) -> None:
    for _ in range(2):
        loop, one = a_loop(), collector()
        loop.add(one)
        loop.run_steps(images(2), 2)
        assert one.run is not None
        one.run.close()
    names = {path.name for path in (tmp_path / "summary").glob("*.zarr")}
    assert names == {"record.zarr", "record-2.zarr"}


@pytest.mark.slow
def test_a_loop_that_goes_back_collects_on_the_branch(collector: Collect, tmp_path: Path) -> None:
    loop, one = a_loop(), collector(collect_freq=2)
    loop.add(one)
    loop.add(Checkpoints(tmp_path / "checkpoints", every=2))
    data = images(4)
    loop.run_epochs(data, 2)
    loop.rewind(4)
    loop.run_epochs(data, 2)
    assert one.run is loop.run
    assert one.run is not None
    for name, module in (("loss", ""), ("input_image", ""), ("param_histogram", "fc.bias")):
        assert steps_of(one.run, name, module) == [0, 1, 3, 5, 7]


def test_one_run_is_followed_by_one_collector(collector: Collect, tmp_path: Path) -> None:
    model = a_loop().trainer.model
    one, other = collector(), collector()
    with nbp.watch(model, store=tmp_path / "own.zarr", probes=None) as run:
        following = one.attach(run)
        with pytest.raises(ValueError, match="this collector follows a training already"):
            one.attach(run)
        with pytest.raises(ValueError, match="another collector follows this run"):
            other.attach(run)
        following.remove()
        following.remove()
        other.attach(run).remove()
    with pytest.raises(TypeError, match=r"attach\(Small\)"):
        one.attach(model)  # type: ignore[arg-type]


def test_epochs_of_ones_own_loop_need_a_length(collector: Collect, tmp_path: Path) -> None:
    model = a_loop().trainer.model
    with nbp.watch(model, store=tmp_path / "own.zarr", probes=None) as run:
        one = collector(unit="epoch", collect_freq=2)
        with pytest.raises(ValueError, match="steps_per_epoch"):
            one.attach(run)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        with one.attach(run, steps_per_epoch=3):
            for x, _ in images(10):
                model(x).sum().backward()
                optimizer.step()
        assert steps_of(run, "input_image") == [2, 5]


@pytest.mark.parametrize("given", [0, -3, True, 2.5, "3"])
def test_an_epoch_of_ones_own_loop_has_whole_steps(
    collector: Collect, tmp_path: Path, given: object
) -> None:
    model = a_loop().trainer.model
    error = ValueError if type(given) is int else TypeError
    with nbp.watch(model, store=tmp_path / "own.zarr", probes=None) as run:
        with pytest.raises(error, match=rf"attach\(steps_per_epoch={given!r}\).*allowed: a whole"):
            collector(unit="epoch").attach(run, steps_per_epoch=given)  # type: ignore[arg-type]
        with collector(unit="epoch").attach(run, steps_per_epoch=3):
            pass
