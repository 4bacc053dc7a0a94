"""What a data set takes, gives, refuses, and goes on with."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader, RandomSampler, TensorDataset, WeightedRandomSampler
from torch.utils.data import Dataset as TorchDataset

from notebook_probe.train import DataError, Dataset, Loop
from notebook_probe.train.data.dataset import for_evaluation
from notebook_probe.train.generators import generator_states, set_generators
from tests.train.conftest import a_loop, batches

X, Y = torch.ones(2, 3), torch.zeros(2)


@pytest.mark.parametrize(
    ("item", "inputs", "labels", "keywords"),
    [
        ((X, Y), 1, 1, ()),
        ([X, Y], 1, 1, ()),
        (((X, X), Y), 2, 1, ()),
        ((X, [Y, Y, Y]), 1, 3, ()),
        (("spec", [X], [Y]), 1, 1, ()),
        ((None, X, Y), 1, 1, ()),
        (X, 1, 0, ()),
        ((X,), 1, 0, ()),
        ({"x": X, "labels": Y}, 0, 1, ("x", "labels")),
        (({"x": X, "mask": X}, Y), 0, 1, ("x", "mask")),
    ],
)
def test_a_batch_is_read_in_every_form(
    item: Any, inputs: int, labels: int, keywords: tuple[str, ...]
) -> None:
    assert next(Dataset([item])).shape == (inputs, labels, keywords)


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ([((), Y)], "without inputs"),
        ([(None, Y)], "without inputs"),
        ([([None], Y)], "None among"),
        ([(X, [None])], "None among"),
        ([{"x": None}], "None among"),
        ([(X, Y, Y, Y)], "4 parts"),
        ([(X, X, Y)], "no tensor"),
        ([(X, Y), (X, [Y, Y])], "1 inputs, 2 labels; before 1 inputs, 1 labels"),
        ([("a", X, Y), ("b", [X, X], Y), ("a", [X, X], Y)], "of 'a': 2 inputs"),
    ],
)
def test_a_batch_that_cannot_be_is_refused_with_its_place(items: list[Any], said: str) -> None:
    with pytest.raises(ValueError, match=said) as error:
        list(Dataset(items, name="pairs"))
    assert f"data 'pairs', batch {len(items) - 1}" in str(error.value)


def test_an_evaluation_is_called_after_the_name_that_its_data_has() -> None:
    class Named(list[Any]):
        name = "val"

    loop = a_loop()
    assert {"val_loss", "val_fn_loss"} == named_by(loop, Named(batches(1)))
    assert {"eval_loss", "eval_fn_loss"} == named_by(loop, batches(1))
    loop.eval_every(Named(batches(2)), 1)
    loop.run_steps(batches(1), 1)
    assert "val_loss" in loop.last_metrics
    assert Dataset(Named()).name == "val"
    assert Dataset(Named(), "test").name == "test"


def named_by(loop: Loop, data: Any) -> set[str]:
    names: set[str] = set()
    hook = loop.on_eval(lambda loop, metrics: names.update(metrics))
    loop.eval(data)
    hook.remove()
    return names


def test_what_is_no_iterable_is_no_data() -> None:
    with pytest.raises(TypeError, match="int is no data"):
        Dataset(3)  # type: ignore[arg-type]


def test_an_error_of_the_data_is_the_datas() -> None:
    def broken() -> Iterator[Any]:
        yield X, Y
        raise OSError("the disk is gone")

    data = Dataset(broken(), name="files")
    next(data)
    with pytest.raises(DataError, match="'files' raised after 1 batches: OSError: the disk") as e:
        next(data)
    assert isinstance(e.value.__cause__, OSError)


def test_an_iterator_can_be_gone_through_once() -> None:
    data = Dataset(iter([(X, Y)]))
    data.reset()  # before it began
    assert len(list(data)) == 1
    with pytest.raises(RuntimeError, match="iterator that can be gone through once"):
        data.reset()


def test_the_end_comes_again_and_again_until_the_data_begins_anew() -> None:
    data = Dataset([(X, Y)] * 3)
    assert len(list(data)) == 3
    assert list(data) == []
    data.reset()
    assert len(list(data)) == 3


class Own:
    name = "own"

    def __init__(self) -> None:
        self.n_resets = 0

    def __iter__(self) -> Iterator[Any]:
        return iter([(X, Y)])

    def reset(self) -> None:
        self.n_resets += 1


def test_a_data_set_of_ones_own_is_told_to_begin_anew() -> None:
    own = Own()
    data = Dataset(own)
    data.reset()
    assert (data.name, own.n_resets) == ("own", 0)  # it has not begun
    list(data)
    data.reset()
    assert own.n_resets == 1


class Noisy(TorchDataset[tuple[torch.Tensor, int]]):
    """Augmentation from every generator of the process."""

    def __len__(self) -> int:
        return 12

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        noise = torch.rand(1).item() + random.random() + float(np.random.rand())
        return torch.tensor([float(i), noise], dtype=torch.float64), i


def loaders() -> dict[str, DataLoader[Any]]:
    noisy = Noisy()
    own = torch.Generator().manual_seed(5)
    return {
        "in order": DataLoader(noisy, 2),
        "shuffled": DataLoader(noisy, 2, shuffle=True),
        "own generator": DataLoader(noisy, 2, shuffle=True, generator=own),
        "with replacement": DataLoader(noisy, 2, sampler=RandomSampler(noisy, replacement=True)),
        "weighted": DataLoader(noisy, 2, sampler=WeightedRandomSampler([1.0] * 12, 12)),
    }


@pytest.mark.parametrize("kind", list(loaders()))
@given(first=st.integers(0, 6), passes=st.integers(0, 2))
def test_data_that_goes_on_gives_what_it_would_have_given(
    kind: str, first: int, passes: int
) -> None:
    torch.manual_seed(3), random.seed(3), np.random.seed(3)
    whole = Dataset(loaders()[kind])
    for _ in range(passes):
        list(whole)
        whole.reset()
    for _ in range(first):
        next(whole)
        torch.rand(3)  # a dropout between two batches
    state, generators = whole.state_dict(), generator_states()
    expected = [batch.inputs[0] for batch in whole]

    torch.manual_seed(99), random.seed(99), np.random.seed(99)
    again = Dataset(loaders()[kind])
    n_drawn = again.load_state_dict(state)
    set_generators(generators)
    found = [batch.inputs[0] for batch in again]
    assert n_drawn == first
    assert len(found) == len(expected) == 6 - first
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_shorter_data_than_the_checkpoint_knew_is_refused() -> None:
    data = Dataset([(X, Y)] * 5)
    for _ in range(4):
        next(data)
    with pytest.raises(ValueError, match="has 3 batches, and the checkpoint was made after 4"):
        Dataset([(X, Y)] * 3).load_state_dict(data.state_dict())


def test_a_state_of_its_own_is_used_and_no_batch_drawn() -> None:
    class Stateful:
        def __init__(self) -> None:
            self.at = 0

        def __iter__(self) -> Iterator[Any]:
            while self.at < 5:
                self.at += 1
                yield torch.tensor([float(self.at)]), Y

        def state_dict(self) -> dict[str, int]:
            return {"at": self.at}

        def load_state_dict(self, state: dict[str, int]) -> None:
            self.at = state["at"]

    data = Dataset(Stateful())
    next(data), next(data)
    again = Dataset(Stateful())
    assert again.load_state_dict(data.state_dict()) == 0
    assert (next(again).inputs[0].item(), again.position) == (3.0, 3)


def test_a_loader_of_tensors_can_be_the_data() -> None:
    data = Dataset(DataLoader(TensorDataset(torch.ones(6, 3), torch.zeros(6)), 2))
    assert (data.length, len(list(data)), data.position) == (3, 3, 3)


class Augmented(TorchDataset[tuple[torch.Tensor, torch.Tensor]]):
    """Noise of a worker's own generator."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, i: int) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.tensor([float(i)]) + torch.randn(1), torch.zeros(1)


def with_workers(persistent: bool = True) -> DataLoader[Any]:
    return DataLoader(Augmented(), 2, shuffle=True, num_workers=1, persistent_workers=persistent)


@pytest.mark.slow
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("first", [0, 3])
def test_data_of_workers_goes_on_in_its_second_pass(persistent: bool, first: int) -> None:
    torch.manual_seed(3)
    whole = Dataset(with_workers(persistent))
    list(whole)
    whole.reset()
    for _ in range(first):
        next(whole)
    state, generators = whole.state_dict(), generator_states()
    expected = [batch.inputs[0] for batch in whole]
    torch.manual_seed(99)
    again = Dataset(with_workers(persistent))
    again.load_state_dict(state)
    set_generators(generators)
    found = [batch.inputs[0] for batch in again]
    assert len(found) == 4 - first
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_each_pass_of_a_training_begins_with_new_workers_and_an_evaluation_keeps_them() -> None:
    class Source(DataLoader[Any]):
        """Starts nothing: its workers are its iterators."""

        def _get_iterator(self) -> Any:
            return Workers()

    class Workers:
        def __iter__(self) -> Any:
            return self

        def __next__(self) -> Any:
            raise StopIteration

        def _reset(self, loader: object) -> None: ...

    def changes_workers(data: Dataset) -> bool:
        list(data)
        before = data.source._iterator  # type: ignore[attr-defined]
        data.reset()
        list(data)
        return data.source._iterator is not before  # type: ignore[attr-defined]

    def source() -> Source:
        return Source(Augmented(), num_workers=1, persistent_workers=True)

    assert changes_workers(Dataset(source()))
    assert not changes_workers(for_evaluation(source()))
