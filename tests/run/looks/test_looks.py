"""The tensors of one module at one step are kept as they were, and training feels nothing."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.errors import (
    NotApplicableError,
    NotLookedError,
    QuantityError,
    UnknownNameError,
)
from notebook_probe.run.looks import kept_tensor, looks
from tests.run.conftest import Watch


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 6 * 6, 3)
    )


def images(n: int, seed: int) -> Tensor:
    return torch.randn(n, 2, 6, 6, generator=torch.Generator().manual_seed(seed))


class Loop:
    """Trains a step at a time, and notes by torch's own hooks what a look should have kept."""

    def __init__(self, model: nn.Module, watched: nn.Module) -> None:
        self.model, self.module = model, watched
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.seen: dict[str, Tensor] = {}
        watched.register_forward_hook(self._called)

    def _called(self, module: nn.Module, given: tuple[Tensor, ...], output: Tensor) -> None:
        self.seen |= {"input": given[0].detach().clone(), "output": output.detach().clone()}
        output.register_hook(lambda grad: self.seen.update(grad_output=grad.detach().clone()))

    def step(self, n: int = 12, seed: int = 0) -> None:
        weight: Tensor = self.module.weight  # type: ignore[assignment]
        self.optimizer.zero_grad()
        self.seen["weight"] = weight.detach().clone()
        self.model(images(n, seed)).square().mean().backward()
        assert weight.grad is not None
        self.seen["grad"] = weight.grad.clone()
        self.optimizer.step()
        self.seen["update"] = weight.detach() - self.seen["weight"]


def test_every_tensor_is_as_torch_has_it_and_its_facts_are_of_all_of_it(watch: Watch) -> None:
    model = network()
    run, loop = watch(model, probes=None), Loop(model, model[0])
    loop.step(seed=1)
    look = run.look("0", samples=5)
    loop.step(seed=2)
    loop.step(seed=3)  # the step of the look is over
    wanted = dict(loop.seen)
    data = look.data
    assert (look.step, data.attrs) == (1, {"module": "0", "step": 1})
    del wanted
    again = run.look("0", samples=5)
    loop.step(seed=4)
    seen = dict(loop.seen)
    assert set(again.data) == set(seen)
    for name, tensor in seen.items():
        kept = tensor[:5] if name in ("input", "output", "grad_output") else tensor
        np.testing.assert_array_equal(again.data[name], kept.numpy(), err_msg=name)
        facts = again.data[name].attrs
        assert tuple(facts["shape"]) == tuple(tensor.shape)
        assert facts["dtype"] == "float32"
        for fact, value in (
            ("minimum", tensor.min()),
            ("mean", tensor.double().mean()),
            ("maximum", tensor.max()),
            ("std", tensor.double().std(correction=0)),
        ):
            assert facts[fact] == pytest.approx(float(value), rel=1e-4, abs=1e-7), (name, fact)
        assert facts["zeros"] == int((tensor == 0).sum())
        assert facts["nonfinite"] == 0


@pytest.mark.slow
def test_looks_are_listed_by_the_run_and_by_its_record(watch: Watch) -> None:
    model = network()
    run, loop = watch(model, probes=None), Loop(model, model[0])
    run.look("0")
    loop.step()
    run.look("3")
    loop.step(n=3)  # another batch size: another shape
    run.look("0")
    loop.step(n=3)
    run.close()
    for source in (run, nbp.open_run(run.location)):
        found = [(look.module, look.step) for look in source.looks]
        assert found == [("0", 0), ("3", 1), ("0", 2)]
        assert [look.data.output.shape for look in source.looks] == [
            (8, 4, 6, 6),
            (3, 3),
            (3, 4, 6, 6),
        ]
        np.testing.assert_array_equal(source.looks[-1].data.output, loop.seen["output"].numpy())
        assert source.looks[0].nbytes == sum(one.nbytes for one in source.looks[0].data.values())
    assert run.status().dropped_rows == 0
    assert [event.kind for event in run.events] == ["look"] * 3  # nobody has attached anything


def test_a_look_is_taken_once_and_training_goes_on_bit_for_bit(watch: Watch) -> None:
    plain, watched = network(), network()
    run, loops = watch(watched, probes=None), (Loop(plain, plain[0]), Loop(watched, watched[0]))
    for seed in range(6):
        if seed in (1, 4):
            run.look("0")
        for loop in loops:
            loop.step(seed=seed)
    assert [look.step for look in run.looks] == [1, 4]
    for ours, theirs in zip(watched.parameters(), plain.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert run.probes() == []


def test_what_was_attached_goes_on_beside_a_look(watch: Watch) -> None:
    model = network()
    run, loop = watch(model, probes=None), Loop(model, model[0])
    run.attach("0", "weight_norm")
    run.attach("0", "grad_norm", "every(2)")
    for seed in range(6):
        if seed == 3:
            run.look("0")
        loop.step(seed=seed)
    assert run.series("0", "weight_norm").step.values.tolist() == [0, 1, 2, 3, 4, 5]
    assert run.series("0", "grad_norm").step.values.tolist() == [0, 2, 4]
    assert [event.kind for event in run.events].count("attach") == 2
    assert "detach" not in [event.kind for event in run.events]


def test_another_thread_gets_the_look_of_the_next_step(watch: Watch) -> None:
    model = network()
    run, loop = watch(model, probes=None), Loop(model, model[0])
    enough = threading.Event()

    def train() -> None:
        while not enough.is_set():
            loop.step()

    background = run.train_in_background(train)
    try:
        look = run.look("0")
        data = look.data
    finally:
        enough.set()
        background.wait()
    assert data.output.shape == (8, 4, 6, 6)
    assert data.attrs["step"] == look.step >= 0


def test_before_its_step_is_over_there_is_nothing_to_see(watch: Watch) -> None:
    model = network()
    run, loop = watch(model, probes=None), Loop(model, model[0])
    look = run.look("0")
    with pytest.raises(NotLookedError, match="train one step"):
        _ = look.data
    model(images(2, 0)).sum().backward()
    with pytest.raises(NotLookedError, match="train one step"):
        _ = look.data
    loop.optimizer.step()
    assert look.data.output.shape == (2, 4, 6, 6)


def test_a_module_that_is_not_called_is_told_of(watch: Watch) -> None:
    class Branches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.idle = nn.Linear(2, 2), nn.ReLU()

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.used(x)
            return out

    model = Branches()
    run, optimizer = watch(model, probes=None), torch.optim.SGD(model.parameters(), lr=0.1)
    look = run.look("idle")
    for _ in range(2):
        model(torch.ones(3, 2)).sum().backward()
        optimizer.step()
    with pytest.raises(NotLookedError, match="idle: it was not called in step 0"):
        _ = look.data
    assert run.looks == []


@pytest.mark.parametrize(
    ("module", "samples", "error", "words"),
    [
        ("7", 8, UnknownNameError, "7"),
        ("*", 8, QuantityError, "one module at a time"),
        ("0", 0, QuantityError, "from 1 to 64"),
        ("0", 2.5, QuantityError, "from 1 to 64"),
    ],
)
def test_what_cannot_be_looked_at_is_refused_at_the_door(
    watch: Watch, module: str, samples: Any, error: type[Exception], words: str
) -> None:
    run = watch(network(), probes=None)
    with pytest.raises(error, match=words):
        run.look(module, samples=samples)


def test_a_large_tensor_is_kept_in_part_and_says_so(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_tensor, "MOST", 100)
    model = network()
    run, loop = watch(model, probes=None), Loop(model, model[0])
    look = run.look("0")
    loop.step()
    data = look.data
    assert data.output.shape == (1, 4, 3, 6)  # one sample, every other row
    np.testing.assert_array_equal(data.output, loop.seen["output"][:1, :, ::2].numpy())
    assert (data.output.attrs["every"], data.output.attrs["along"]) == (2, 2)
    assert tuple(data.output.attrs["shape"]) == (12, 4, 6, 6)
    assert data.weight.shape == (4, 2, 3, 3)


def keep_at_most(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "MOST_LOOKS", n)


def test_the_oldest_look_makes_room_for_the_next_and_an_event_says_so(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_at_most(2, monkeypatch)
    model = network()
    run, loop = watch(model, probes=None), Loop(model, model[0])
    for _ in range(3):
        look = run.look("0")
        loop.step()
    assert look.data.attrs["step"] == 2
    loop.step()  # told of once its step is over
    assert [one.step for one in run.looks] == [1, 2]
    [gone] = [event for event in run.events if event.kind == "look_gone"]
    assert (gone.step, gone.text) == (2, "the look at 0 of step 0 made room: 2 are kept")
    run.close()
    assert [one.step for one in nbp.open_run(run.location).looks] == [1, 2]


def test_of_too_many_looks_in_one_step_the_first_gives_way(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_at_most(2, monkeypatch)
    model = network()
    run, loop = watch(model, probes=None), Loop(model, model[0])
    asked = [run.look(module) for module in ("0", "1", "3")]
    loop.step()
    loop.step()
    assert [one.module for one in run.looks] == ["1", "3"]
    with pytest.raises(NotLookedError, match="0: 2 others were asked for after it"):
        _ = asked[0].data


def test_a_module_that_is_asked_for_twice_is_looked_at_once_with_more_samples(watch: Watch) -> None:
    model = network()
    run, loop = watch(model, probes=None), Loop(model, model[0])
    asked = [run.look("0", samples=n) for n in (2, 5, 3)]
    loop.step()
    loop.step()
    assert len(run.looks) == 1
    assert [look.data.output.shape[0] for look in asked] == [5, 5, 5]


def test_looks_take_so_much_of_a_record_and_no_more(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looks, "MOST_BYTES", 1)
    model = network()
    run, loop = watch(model, probes=None), Loop(model, model[0])
    run.look("0")
    loop.step()
    full = run.look("0")
    loop.step()
    with pytest.raises(NotLookedError, match="the looks of this record take"):
        _ = full.data


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_not_finite_is_counted_and_kept(watch: Watch, value: float) -> None:
    model = nn.Linear(2, 2)
    run, optimizer = watch(model, probes=None), torch.optim.SGD(model.parameters(), lr=0.1)
    look = run.look("(root)")
    model(torch.tensor([[1.0, 2.0], [value, 0.0]])).sum().backward()
    optimizer.step()
    facts = look.data.input.attrs
    assert (facts["nonfinite"], facts["zeros"], facts["maximum"]) == (1, 1, 2.0)
    np.testing.assert_array_equal(look.data.input, [[1.0, 2.0], [value, 0.0]])
    assert look.data.output.attrs["nonfinite"] == 2


def test_half_precision_integers_and_truth_values_are_looked_at(watch: Watch) -> None:
    model = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 2)).to(torch.bfloat16)
    run, optimizer = watch(model, probes=None), torch.optim.SGD(model.parameters(), lr=0.1)
    look = run.look("0")
    tokens = torch.tensor([[1, 0, 3], [4, 5, 6]])
    model(tokens).sum().backward()
    optimizer.step()
    np.testing.assert_array_equal(look.data.input, tokens.numpy())
    assert look.data.input.attrs["dtype"] == "int64"
    assert look.data.weight.attrs["dtype"] == "bfloat16"


def test_attention_is_how_each_query_shares_itself_out(watch: Watch) -> None:
    class Attention(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            heads = x.unflatten(-1, (2, 4)).transpose(1, 2)
            out = nn.functional.scaled_dot_product_attention(heads, heads, heads, is_causal=True)
            return out.transpose(1, 2).flatten(2)

    model = nn.Sequential(nn.Linear(8, 8), Attention(), nn.Linear(8, 1))
    run, optimizer = watch(model, probes=None), torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(5, 6, 8, generator=torch.Generator().manual_seed(3))
    look = run.look("1", samples=3)
    with torch.no_grad():
        heads = model[0](x)[:3].unflatten(-1, (2, 4)).transpose(1, 2)
        scores = heads @ heads.transpose(-1, -2) / 2.0
        scores = scores.masked_fill(torch.ones(6, 6).triu(1).bool(), -torch.inf)
    model(x).sum().backward()
    optimizer.step()
    shares = look.data.attention
    np.testing.assert_allclose(shares, torch.softmax(scores, -1).numpy(), rtol=1e-4, atol=1e-6)
    assert tuple(shares.attrs["shape"]) == (5, 2, 6, 6)


def test_a_malformed_look_of_a_foreign_record_is_left_out(watch: Watch) -> None:
    model = network()
    run, loop = watch(model, probes=None), Loop(model, model[0])
    run.look("0")
    loop.step()
    for detail in ("", "[]", '{"module": "0"}', '{"module": 0, "tensors": {"a": {}}}', "[" * 10**5):
        run._parts.writer.event(0, "look", "hostile", detail)
    loop.step()
    assert [look.step for look in run.looks] == [0]


def test_no_look_needs_what_the_module_has_not(watch: Watch) -> None:
    class Nothing(nn.Module):
        pass

    model = nn.Sequential(nn.Linear(2, 2))
    run = watch(model, probes=None)
    run.look("0")
    with pytest.raises((NotApplicableError, UnknownNameError)):
        run.look("0.bias.nothing")
