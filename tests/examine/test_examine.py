"""What an examination finds in models with one planted mistake, and not in their healthy twins."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from notebook_probe.errors import NotApplicableError
from notebook_probe.examine import Examination, Finding
from notebook_probe.examine.examining import examine
from notebook_probe.examine.subject import Subject
from tests.models import normal
from tests.run.conftest import Watch, watch

__all__ = ["watch"]

N, WIDTH, CLASSES = 8, 6, 3
IMAGES, LABELS = normal(0, N, WIDTH), torch.arange(N) % CLASSES
TOKENS = torch.arange(40).reshape(4, 10) % 7
NEXT = torch.arange(1, 41).reshape(4, 10) % 7


def examined(
    model: nn.Module,
    inputs: Any = IMAGES,
    targets: Any = LABELS,
    loss: Callable[..., Tensor] | None = F.cross_entropy,
    optimizer: torch.optim.Optimizer | None = None,
) -> Examination:
    optimizer = optimizer or torch.optim.SGD(model.parameters(), 0.1)
    return examine(Subject.of(model, [optimizer], inputs, targets, loss))


def net(*last: nn.Module, out: int = CLASSES) -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(WIDTH, 16), nn.ReLU(), nn.Linear(16, out), *last)


def of(found: Examination, check: str) -> list[tuple[str, str]]:
    return [(one.verdict, one.text) for one in found if one.check == check]


class Tokens(nn.Module):
    """Attention over tokens, causal or not."""

    def __init__(self, is_causal: bool) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.embedding, self.head = nn.Embedding(7, 8), nn.Linear(8, 7)
        self.is_causal = is_causal

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        return self.head(x + F.scaled_dot_product_attention(x, x, x, is_causal=self.is_causal))


def of_tokens(output: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(output.flatten(0, 1), targets.flatten())


class Dropped(nn.Module):
    def __init__(self, training: bool | None) -> None:
        super().__init__()
        self.inner, self._is_on = net(), training

    def forward(self, x: Tensor) -> Tensor:
        is_on = self.training if self._is_on is None else self._is_on
        return F.dropout(self.inner(x), 0.5, is_on)


class AlphaDropped(Dropped):
    def forward(self, x: Tensor) -> Tensor:
        return F.alpha_dropout(self.inner(x))  # which is off unless training=True is passed


class OverBatch(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.inner, self.dim = net(), dim

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x).log_softmax(self.dim)


class Cut(nn.Module):
    def __init__(self, cuts: bool) -> None:
        super().__init__()
        self.inner, self.last, self._cuts = net(out=4), nn.Linear(4, CLASSES), cuts

    def forward(self, x: Tensor) -> Tensor:
        found = self.inner(x)
        return self.last(found.detach() if self._cuts else found)


def test_a_healthy_classifier_has_nothing_wrong_and_nothing_to_look_at() -> None:
    found = examined(net())
    assert {one.verdict for one in found} == {"good"}
    assert {one.check for one in found} == {
        "who trains", "gradients", "loss", "targets", "first loss", "inputs", "input", "samples",
        "evaluation repeats", "non-linearity", "cost",
    }  # fmt: skip


WRONG: dict[str, tuple[Callable[[], Examination], str, str]] = {
    "softmax twice": (
        lambda: examined(net(nn.Softmax(1))),
        "loss",
        "cross_entropy takes logits, and gets a softmax",
    ),
    "sigmoid twice": (
        lambda: examined(
            net(nn.Sigmoid(), out=1), IMAGES, torch.ones(N, 1), F.binary_cross_entropy_with_logits
        ),
        "loss",
        "binary_cross_entropy_with_logits takes logits, and gets a sigmoid",
    ),
    "nll of probabilities": (
        lambda: examined(net(nn.Softmax(1)), loss=F.nll_loss),
        "loss",
        "nll_loss takes log-probabilities, and gets probabilities",
    ),
    "targets out of the range": (
        lambda: examined(net(nn.Sigmoid(), out=1), IMAGES, 9 * IMAGES[:, :1], F.mse_loss),
        "targets",
        "targets lie outside of [0, 1], which is all that a sigmoid at the end can give",
    ),
    "shapes that are broadcast": (
        lambda: examined(
            net(out=1), IMAGES, IMAGES[:, 0], lambda output, y: (output - y).square().mean()
        ),
        "targets",
        "output (8, 1) and targets (8,) are broadcast",
    ),
    "functional dropout": (
        lambda: examined(Dropped(True)),
        "evaluation repeats",
        "dropout stays on in evaluation mode, at ",
    ),
    "tokens that see the next": (
        lambda: examined(Tokens(is_causal=False), TOKENS, NEXT, of_tokens),
        "causality",
        "outputs depend on later positions, and the targets are the next tokens",
    ),
    "an input that is not finite": (
        lambda: examined(net(), IMAGES / IMAGES.clamp(min=0)),
        "inputs",
        "input values are not finite",
    ),
    "a layer replaced behind the optimizer": (
        lambda: _replaced(net()),
        "who trains",
        "no optimizer holds 2 of 4 parameters that require a gradient: 2.weight, 2.bias, but 2 ",
    ),
    "no gradient wanted": (
        lambda: examined(net().requires_grad_(False), optimizer=_of_nothing()),
        "who trains",
        "no parameter requires a gradient",
    ),
    "a loss that was cut off": (
        lambda: examined(net(), loss=lambda output, y: F.cross_entropy(output.detach(), y)),
        "gradients",
        "the loss does not depend on any parameter",
    ),
    "a loss of nothing": (
        lambda: examined(net(), loss=lambda output, y: F.cross_entropy(output, y) * 0),
        "gradients",
        "every gradient is exactly zero",
    ),
}


def _replaced(model: nn.Sequential) -> Examination:
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model[2] = nn.Linear(16, CLASSES)
    return examined(model, optimizer=optimizer)


def _of_nothing() -> torch.optim.Optimizer:
    return torch.optim.SGD([nn.Parameter(torch.zeros(1))], 0.1)


@pytest.mark.parametrize("mistake", WRONG)
def test_a_mistake_is_named(mistake: str) -> None:
    make, check, text = WRONG[mistake]
    found = make()
    assert [one.check for one in found.wrong if text in one.text] == [check]


NOTES: dict[str, tuple[Callable[[], Examination], str, str]] = {
    "a part that is cut off": (
        lambda: examined(Cut(True)),
        "gradients",
        "the loss does not depend on inner.0.weight",
    ),
    "a softmax over the batch": (
        lambda: examined(OverBatch(0), loss=F.nll_loss),
        "samples",
        "the outputs of samples change with another sample",
    ),
    "layers without anything between": (
        lambda: examined(nn.Sequential(nn.Linear(WIDTH, 16), nn.Linear(16, CLASSES))),
        "non-linearity",
        "the network is affine in its input: its 2 layers are no more than one",
    ),
    "pixels from 0 to 255": (
        lambda: examined(net(), IMAGES.abs() * 100),
        "inputs",
        "layers are made for about 0 and 1",
    ),
    "a last layer that begins too large": (
        lambda: examined(_scaled(net(), 100.0)),
        "first loss",
        "guessing among 3 classes has 1.1",
    ),
    "a last layer that begins at zero": (
        lambda: examined(_scaled(net(), 0.0)),
        "input",
        "every sample has the same output",
    ),
    "a part in no optimizer": (
        lambda: _with_last_only(net()),
        "who trains",
        "no optimizer holds 2 of 4 parameters that require a gradient: 0.weight, 0.bias",
    ),
}


def _scaled(model: nn.Sequential, factor: float) -> nn.Sequential:
    with torch.no_grad():
        for one in model[-1].parameters():
            one.mul_(factor)
    return model


def _with_last_only(model: nn.Sequential) -> Examination:
    return examined(model, optimizer=torch.optim.SGD(model[-1].parameters(), 0.1))


@pytest.mark.parametrize("kind", NOTES)
def test_what_may_be_intended_is_a_note_and_nothing_is_called_wrong(kind: str) -> None:
    make, check, text = NOTES[kind]
    found = make()
    assert found.wrong == ()
    assert [one.check for one in found if one.verdict == "note" and text in one.text] == [check]


HEALTHY: dict[str, Callable[[], Examination]] = {
    "dropout that is switched off": lambda: examined(Dropped(None)),
    "dropout that is off by default": lambda: examined(AlphaDropped(None)),
    "a softmax over the classes": lambda: examined(OverBatch(1), loss=F.nll_loss),
    "causal tokens": lambda: examined(Tokens(is_causal=True), TOKENS, NEXT, of_tokens),
    "nothing is cut off": lambda: examined(Cut(False)),
    "a sigmoid and its targets": lambda: examined(
        net(nn.Sigmoid(), out=1), IMAGES, torch.arange(N)[:, None] % 2.0, F.binary_cross_entropy
    ),
    "shapes that are alike": lambda: examined(net(out=1), IMAGES, IMAGES[:, :1], F.mse_loss),
    "batch normalization": lambda: examined(
        nn.Sequential(nn.Linear(WIDTH, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, CLASSES))
    ),
    "convolutions": lambda: examined(
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, CLASSES)),
        normal(1, N, 3, 8, 8),
    ),
}


@pytest.mark.parametrize("kind", HEALTHY)
def test_a_healthy_twin_has_only_good_answers(kind: str) -> None:
    assert {one.verdict for one in HEALTHY[kind]()} == {"good"}, repr(HEALTHY[kind]())


def test_the_training_that_follows_is_equal_bit_for_bit(watch: Watch) -> None:
    def trained(looks: bool) -> tuple[list[Tensor], list[float]]:
        model = nn.Sequential(net(out=4), nn.Dropout(0.5), nn.BatchNorm1d(4))
        torch.manual_seed(3)
        optimizer = torch.optim.AdamW(model.parameters())
        run = watch(model, optimizer)
        for _ in range(3):
            if looks:
                assert not run.examine(IMAGES, LABELS, F.cross_entropy).wrong
            optimizer.zero_grad()
            F.cross_entropy(model(IMAGES), LABELS).backward()
            optimizer.step()
        run.flush()
        return [*model.state_dict().values()], run.series("2", "output_norm").values.tolist()

    (weights, norms), (others, their_norms) = trained(True), trained(False)
    assert all(map(torch.equal, weights, others))
    assert norms == their_norms


def test_arguments_by_position_by_name_and_an_output_with_its_own_loss() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = net()

        def forward(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
            logits = self.inner(x)
            return {"logits": logits, "loss": F.cross_entropy(logits, labels)}

    for inputs in ((IMAGES, LABELS), {"x": IMAGES, "labels": LABELS}):
        found = examined(Model(), inputs, None, None)
        assert [verdict for verdict, _ in of(found, "gradients")] == ["good"]
        assert not found.wrong


def test_without_a_loss_and_an_optimizer_what_needs_them_is_not_checked(watch: Watch) -> None:
    found = watch(net(), probes=None).examine(IMAGES)
    unknown = {one.check: one.text for one in found if one.verdict == "unknown"}
    assert unknown == {
        "who trains": "no optimizer is known yet: pass one to nbp.watch(model, optimizer)",
        "gradients": "no loss is known: examine(inputs, targets, loss)",
    }


def test_a_model_or_loss_that_raises_says_so_and_the_other_checks_go_on() -> None:
    found = examined(net(), IMAGES, LABELS + 9)
    assert ("unknown", "IndexError: Target 9 is out of bounds.") in of(found, "gradients")
    assert of(found, "samples") == [("good", "no sample changes the output of another one")]


def test_an_error_of_many_checks_is_one_line() -> None:
    found = examined(net(), normal(0, N, WIDTH + 1))
    assert sum("cannot be multiplied" in line for line in repr(found).splitlines()) == 1
    assert "unknown  gradients, loss, targets, targets of samples, first loss, input, " in repr(
        found
    )
    assert found._repr_html_().count("cannot be multiplied") == 1
    assert len(json.loads(found.to_json())["findings"]) > 10


def test_classes_that_the_output_does_not_have_are_wrong_if_the_loss_refuses_them() -> None:
    beyond = LABELS.clone()
    beyond[3] = CLASSES
    assert of(examined(net(), targets=beyond), "targets")[:1] == [
        ("wrong", "1 of 8 targets are no class of the output, which has 0 to 2: there are 0 to 3")
    ]
    ignored = LABELS.clone()
    ignored[3] = -100
    assert examined(net(), targets=ignored).wrong == ()


@pytest.mark.filterwarnings("error")
def test_a_first_loss_that_is_not_finite_is_not_good() -> None:
    nothing = examined(net(), IMAGES[:0], LABELS[:0])
    assert of(nothing, "first loss") == []
    assert [one.text for one in nothing.wrong] == ["the loss is nan at the first batch"]


def test_a_model_that_cannot_be_copied_is_refused_in_words() -> None:
    class Holds(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = net()
            self.words = (word for word in "abc")

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x)

    with pytest.raises(NotApplicableError, match="Holds cannot be copied, and is examined as a"):
        examined(Holds())


def test_hooks_of_the_user_hear_nothing() -> None:
    model, heard = net(), list[nn.Module]()
    model[0].register_forward_hook(lambda module, *_: heard.append(module))
    examined(model)
    assert heard == []


def test_a_report_is_text_a_table_and_json_with_what_it_quotes_escaped() -> None:
    found = Examination.of([
        Finding("causality", "good", "fine"),
        Finding("loss", "wrong", "<script>alert(1)</script>", "a < b"),
    ])  # fmt: skip
    assert repr(found).splitlines() == [
        "1 wrong, 1 good",
        "wrong    loss: <script>alert(1)</script>",
        "         try: a < b",
        "good     causality: fine",
    ]
    table = found._repr_html_()
    assert "<script>" not in table
    assert "&lt;script&gt;" in table
    assert "<code>a &lt; b</code>" in table
    assert json.loads(found.to_json()) == found.to_dict()
    assert (len(found), found[0].check, found.wrong) == (2, "loss", (found[0],))
    assert repr(Examination.of([])) == "nothing was checked"
