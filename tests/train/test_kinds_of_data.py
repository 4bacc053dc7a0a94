"""Data of other systems' kinds at every entry, and one batch where batches are expected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from notebook_probe.experiment.validation import Validation, mean_dict
from notebook_probe.train import Loop, Trainer
from notebook_probe.train.callbacks import find_learning_rate
from notebook_probe.train.data.dataset import Dataset

N = 3


def batches(n: int = N) -> list[tuple[torch.Tensor, torch.Tensor]]:
    own = torch.Generator().manual_seed(1)
    return [(torch.randn(6, 4, generator=own), torch.randn(6, 2, generator=own)) for _ in range(n)]


class Stream:
    """GoMLX's kind: it goes to its end, and begins again by ``reset()`` alone."""

    name = "stream"

    def __init__(self) -> None:
        self.at, self.n_resets = 0, 0

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self.at >= N:
            raise StopIteration
        self.at += 1
        return batches()[self.at - 1]

    def reset(self) -> None:
        self.at, self.n_resets = 0, self.n_resets + 1


class Nameless(Stream):
    name = ""


class WithSpec(Stream):
    """GoMLX's, which gives what kind of batch it is, and lists of inputs and labels."""

    def __next__(self) -> Any:
        inputs, labels = super().__next__()
        return "kind", [inputs], [labels]


class Pipeline:
    """MindSpore's kind: each pass gives lists of columns, and it has a size and a ``reset()``."""

    def __iter__(self) -> Iterator[Any]:
        return iter([list(one) for one in batches()])

    def get_dataset_size(self) -> int:
        return N

    def reset(self) -> None: ...


def loader() -> DataLoader[Any]:
    inputs, labels = (torch.cat(one) for one in zip(*batches(), strict=True))
    return DataLoader(TensorDataset(inputs, labels), batch_size=6)


KINDS: dict[str, Callable[[], Any]] = {
    "list": batches,
    "loader": loader,
    "gomlx": Stream,
    "gomlx without a name": Nameless,
    "gomlx with a spec": WithSpec,
    "mindspore": Pipeline,
}
kinds = pytest.mark.parametrize("kind", KINDS)


def a_loop() -> Loop:
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    return Loop(Trainer(model, nn.functional.mse_loss, optimizer), progress=False)


def weight(loop: Loop) -> torch.Tensor:
    return loop.trainer.model.weight.detach().clone()  # type: ignore[operator]


@kinds
def test_every_epoch_has_every_batch(kind: str) -> None:
    loop, plain = a_loop(), a_loop()
    loop.run_epochs(KINDS[kind](), 3)
    plain.run_epochs(batches(), 3)
    assert loop.loop_step == 3 * N
    assert torch.equal(weight(loop), weight(plain))


@kinds
def test_epochs_go_on_with_the_data_of_the_epochs_before(kind: str) -> None:
    loop, data = a_loop(), KINDS[kind]()
    loop.run_epochs(data, 2)
    loop.run_epochs(data, 1)
    assert loop.loop_step == 3 * N


@kinds
def test_steps_go_on_where_the_steps_before_ended(kind: str) -> None:
    loop, plain, data = a_loop(), a_loop(), KINDS[kind]()
    loop.run_steps(data, 2)
    loop.run_to_global_step(data, N)
    plain.run_epochs(batches(), 1)
    assert torch.equal(weight(loop), weight(plain))


@kinds
def test_an_evaluation_has_every_batch_again_and_again(kind: str) -> None:
    trainer, data = a_loop().trainer, KINDS[kind]()
    found = trainer.eval(data)
    assert trainer.eval(data) == found == trainer.eval(batches())


@kinds
def test_an_evaluation_every_few_steps_has_every_batch(kind: str) -> None:
    loop, data = a_loop(), KINDS[kind]()
    seen: list[int] = []
    count = loop.trainer.model.register_forward_hook
    count(lambda module, args, out: None if module.training else seen.append(loop.loop_step))
    loop.eval_every(data, 2)
    loop.run_epochs(batches(), 2)
    assert seen == [1] * N + [3] * N + [5] * N


@kinds
def test_a_training_that_goes_on_from_a_state_draws_the_batches_that_come_next(kind: str) -> None:
    whole, first, second = a_loop(), a_loop(), a_loop()
    whole.run_epochs(KINDS[kind](), 2)
    first.run_steps(KINDS[kind](), 2)
    second.trainer.load_state_dict(first.trainer.state_dict())
    second.load_state_dict(first.state_dict())
    second.run_epochs(KINDS[kind](), 2)
    assert torch.equal(weight(second), weight(whole))


@kinds
def test_a_learning_rate_is_looked_for_on_all_batches_and_leaves_them_to_the_training(
    kind: str,
) -> None:
    loop, data = a_loop(), KINDS[kind]()
    find_learning_rate(loop.trainer, data, n=6)
    loop.run_epochs(data, 1)
    assert loop.loop_step == N


@pytest.mark.parametrize("kind", ["list", "gomlx"])
@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_validation_begins_at_the_beginning_of_its_data(kind: str, n: int) -> None:
    def first(inputs: Any, output: Any) -> dict[str, Any]:
        return {"first": float(inputs[0].sum())}

    data = KINDS[kind]()
    validation = Validation("held_out", data, first, num_steps=n, agg=mean_dict)
    model = nn.Linear(4, 2)
    found = [validation.run(model, call=lambda model, batch: model(batch[0])) for _ in range(3)]
    sums = [float(x.sum()) for x, _ in batches()]
    wanted = sum(sums[i % N] for i in range(n)) / n
    assert [one["first"] for one in found] == pytest.approx([wanted] * 3, rel=1e-5)


def test_an_iterator_that_cannot_be_reset_still_says_so() -> None:
    with pytest.raises(RuntimeError, match="an iterator that can be gone through once"):
        a_loop().run_epochs(iter(batches()), 2)


X, Y = batches()[0]
LONE = {"pair": (X, Y), "dict": {"x": X, "labels": Y}, "tensor": X}


@pytest.mark.parametrize("lone", LONE)
def test_one_batch_is_not_read_as_several(lone: str) -> None:
    """With a loss of one argument it would train on the labels."""
    loop = a_loop()
    loop.trainer._forward = None  # type: ignore[assignment]
    with pytest.raises(TypeError, match=r"one batch .* allowed: a list of them, such as \["):
        loop.trainer.train_step_accumulated(LONE[lone])
    for entry in (loop.trainer.eval, lambda data: loop.run_steps(data, 1), Dataset):
        with pytest.raises(TypeError, match="a list of them"):
            entry(LONE[lone])
    with pytest.raises(TypeError, match="a list of them"):
        loop.run_epochs(LONE[lone], 1)


@pytest.mark.parametrize("several", [[(X, Y)], [(X, Y), (X, Y)], [{"x": X, "labels": Y}]])
def test_several_batches_are_not_read_as_one(several: list[Any]) -> None:
    loop = a_loop()
    with pytest.raises(TypeError, match=r"allowed: one batch, .*train_step_accumulated"):
        loop.trainer.train_step(several)
    assert loop.trainer.global_step == 0


@pytest.mark.parametrize("one", [(X, Y), [X, Y], [[X], [Y]], ([X], [Y])])
def test_one_batch_is_trained_as_a_list_of_it_is(one: Any) -> None:
    found = a_loop().trainer.train_step(one)
    assert found == a_loop().trainer.train_step_accumulated([(X, Y)])
    assert found is not None


def test_several_batches_in_a_tuple_are_several() -> None:
    loop = a_loop()
    assert loop.trainer.train_step_accumulated(tuple(batches())) is not None
