"""Targets of tokens: shifted wrongly, padded, left out; each mistake with its healthy twins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import SGD

import notebook_probe as nbp

N_ROWS, N_TOKENS, N_KINDS = 8, 12, 20
Step = Callable[[nn.Module, Tensor], Tensor]
"""Loss of a model of tokens, given one more token than it takes."""


class Tokens(nn.Module):
    """A model of tokens, which may be given those of an encoder, and labels, which it ignores."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.head = nn.Embedding(N_KINDS, 8), nn.Linear(8, N_KINDS)

    def forward(
        self, tokens: Tensor, others: Tensor | None = None, labels: Tensor | None = None
    ) -> Tensor:
        out: Tensor = self.embed(tokens)
        if others is not None:
            out = out + self.embed(others).mean()
        return cast(Tensor, self.head(out))


class Functional(Tokens):
    """The same without a layer that looks its tokens up."""

    def forward(
        self, tokens: Tensor, others: Tensor | None = None, labels: Tensor | None = None
    ) -> Tensor:
        return cast(Tensor, self.head(F.embedding(tokens.long(), self.embed.weight)))


def flat(logits: Tensor, targets: Tensor, ignored: int = -100) -> Tensor:
    return F.cross_entropy(logits.reshape(-1, N_KINDS), targets.reshape(-1), ignore_index=ignored)


def shifts_itself(model: nn.Module, tokens: Tensor, labels: Tensor) -> Tensor:
    """Return the loss as a model of transformers computes it from labels."""
    labels = F.pad(labels, (0, 1), value=-100)[:, 1:]
    return flat(model(tokens, labels=labels), labels)


def hidden(model: nn.Module, s: Tensor) -> Tensor:
    """Return the loss of some tokens that are hidden, as a model with labels computes it."""
    labels = torch.where(s > 5, s, -100)
    return flat(model(torch.where(s > 5, 0, s), labels=labels), labels)


def time_first(model: nn.Module, s: Tensor) -> Tensor:
    s = s.t()
    return flat(model(s[:-1]), s[1:])


COPIED: list[Step] = [
    lambda model, s: flat(model(s), s),
    lambda model, s: flat(model(s[:, :-1]), s[:, :-1]),
    lambda model, s: flat(model(s, s), s),
    lambda model, s: flat(model(s, labels=s), s),
    lambda model, s: F.cross_entropy(model(s).transpose(1, 2), s),
    lambda model, s: flat(model(s.t()), s.t()),
    lambda model, s: flat(model(s)[:, 1:], s[:, 1:]),
    lambda model, s: flat(model(s)[..., -5:, :].contiguous(), s[:, -5:]),
]
TWICE: list[Step] = [
    lambda model, s: shifts_itself(model, s[:, :-1], s[:, 1:]),
    lambda model, s: flat(model(s)[:, :-2], s[:, 2:]),
]
BEFORE: list[Step] = [
    lambda model, s: flat(model(s)[:, 1:], s[:, :-1]),
    lambda model, s: F.cross_entropy(model(s).transpose(1, 2)[:, :, 1:], s[:, :-1]),
]
RIGHT: list[Step] = [
    lambda model, s: flat(model(s[:, :-1]), s[:, 1:]),
    lambda model, s: flat(model(s)[:, :-1], s[:, 1:]),
    lambda model, s: flat(model(s[:, :-1], labels=s[:, 1:]), s[:, 1:]),
    lambda model, s: shifts_itself(model, s, s),
    hidden,
    # A decoder makes its inputs of the labels.
    lambda model, s: flat(model(s.flip(0), F.pad(s, (1, 0))[:, :-1], labels=s), s),
    lambda model, s: F.cross_entropy(model(s[:, :-1]).transpose(1, 2), s[:, 1:]),
    time_first,
    lambda model, s: flat(model(s), (s + 1) % N_KINDS),  # of another kind
    lambda model, s: flat(model(torch.where(s > 5, 0, s)), s),  # some tokens are masked
    # An encoder is given what the decoder is to say, one token late.
    lambda model, s: flat(model(s[:, 1:], s[:, :-1]), s[:, 1:]),
    lambda model, s: flat(model(s[:, :1].repeat(1, 9)), s[:, :1].repeat(1, 9)),  # all the same
    lambda model, s: flat(model(s.view(-1, 1))[:, -1], s.flatten()),  # rows of one token: classes
    # Others come in front, as those of an image.
    lambda model, s: flat(model(torch.cat([s, s], 1), s)[:, N_TOKENS:-1], s[:, 1:]),
]


def sequences(step: int) -> Tensor:
    generator = torch.Generator().manual_seed(step)
    return torch.randint(1, N_KINDS, (N_ROWS, N_TOKENS), generator=generator)


def padded(step: int) -> Tensor:
    """Return rows of different lengths, filled up with 0."""
    lengths = 3 + (torch.arange(N_ROWS) + step) % 6
    return sequences(step) * (torch.arange(N_TOKENS) < lengths[:, None])


def remarks_of(
    step: Step,
    folder: Path,
    batch: Callable[[int], Tensor] = sequences,
    kind: type[Tokens] = Tokens,
) -> list[tuple[str, int, str]]:
    model = kind()
    optimizer = SGD(model.parameters(), lr=1e-3)
    with nbp.watch(model, optimizer, folder / "a.zarr", [], budget=None) as run:
        for i in range(12):
            loss = step(model, batch(i))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert "facts are off" not in str(run.events)
    assert [*run.alerts] == []
    return [(one.rule, one.step, one.text) for one in run.remarks]


@pytest.mark.parametrize(
    ("step", "text"),
    [(one, "each target is the input at the same place") for one in COPIED]
    + [(one, "the targets are shifted twice, unless") for one in TWICE]
    + [(one, "each target is the token before it") for one in BEFORE],
)
def test_targets_that_are_other_tokens_than_the_next_ones_are_a_remark_at_the_second_step(
    step: Step, text: str, tmp_path: Path
) -> None:
    [(rule, at, said)] = remarks_of(step, tmp_path)
    assert (rule, at) == ("targets_shifted", 1)
    assert text in said


@pytest.mark.parametrize("step", RIGHT)
def test_targets_that_are_the_next_tokens_or_none_of_them_are_fine(
    step: Step, tmp_path: Path
) -> None:
    assert remarks_of(step, tmp_path) == []


@pytest.mark.parametrize(
    ("step", "is_named"),
    [
        (COPIED[0], True),
        (TWICE[0], True),
        (lambda model, s: flat(model(s.flip(0), labels=s), s), False),
        (lambda model, s: flat(model(9 * torch.rand(N_ROWS, N_TOKENS), labels=s), s), False),
        (hidden, False),
    ],
)
def test_labels_of_a_model_whose_lookups_are_not_known_are_not_its_inputs(
    step: Step, is_named: bool, tmp_path: Path
) -> None:
    found = [one[0] for one in remarks_of(step, tmp_path, kind=Functional)]
    assert found == ["targets_shifted"] * is_named


def each(model: nn.Module, s: Tensor) -> Tensor:
    """Return the loss of each token."""
    return F.cross_entropy(model(s[:, :-1]).transpose(1, 2), s[:, 1:], reduction="none")


@pytest.mark.parametrize("side", ["ends", "beginnings"])
@pytest.mark.parametrize(
    "step",
    [
        lambda model, s: flat(model(s[:, :-1]), s[:, 1:], ignored=-1),
        lambda model, s: shifts_itself(model, s, s),  # behind the padding the last one is ignored
        lambda model, s: flat(model(s[:, :-1]), s[:, 1:].byte(), ignored=99),
        lambda model, s: each(model, s).mean(),
        lambda model, s: each(model, s).view(N_ROWS, -1).sum() / N_ROWS,
    ],
)
def test_padding_that_the_loss_counts_is_a_remark_with_its_share(
    step: Step, side: str, tmp_path: Path
) -> None:
    def batch(step: int) -> Tensor:
        return padded(step) if side == "ends" else padded(step).flip(1)

    [(rule, at, text)] = remarks_of(step, tmp_path, batch)
    assert (rule, at) == ("padding_counted", 1)
    share = (batch(1)[:, 1:] == 0).double().mean().item()
    assert f"{share:.0%} of the targets are 0, at the {side} of rows" in text
    assert "ignore_index=0" in text


def masked(model: nn.Module, s: Tensor) -> Tensor:
    """Return a loss without padding, which is left out by hand."""
    is_text = s[:, 1:] != 0
    return (each(model, s) * is_text).sum() / is_text.sum()


def selected(model: nn.Module, s: Tensor) -> Tensor:
    return 0.5 * each(model, s)[s[:, 1:] != 0].mean()


def filled(model: nn.Module, s: Tensor) -> Tensor:
    return each(model, s).masked_fill(s[:, 1:] == 0, 0).mean()


def long_chain(model: nn.Module, s: Tensor) -> Tensor:
    """Return a masked loss, of which many operations are made."""
    loss = filled(model, s)
    for _ in range(2):
        loss = loss.view(1).mean() * 1.5
    return loss / 3


def weighted(model: nn.Module, s: Tensor) -> Tensor:
    weight = torch.ones(N_KINDS).index_fill(0, torch.tensor([0]), 0)
    return F.cross_entropy(model(s[:, :-1]).flatten(0, 1), s[:, 1:].flatten(), weight)


def states(model: nn.Module, s: Tensor) -> Tensor:
    """Return the loss of states that are passed one after another, such as phases."""
    begun = torch.arange(N_ROWS)[:, None] % 4
    return flat(model(s), (begun + torch.arange(N_TOKENS)).clamp(max=6))


@pytest.mark.parametrize("step", [masked, selected, filled, long_chain, weighted, states])
def test_padding_that_is_left_out_by_hand_and_last_states_are_fine(
    step: Step, tmp_path: Path
) -> None:
    assert remarks_of(step, tmp_path, padded) == []


def text_with_zeros(step: int) -> Tensor:
    """Return rows in which 0 is a token like any other, and frequent at the end."""
    found = padded(step)
    found[:, ::3] = 0
    return found


@pytest.mark.parametrize(
    ("batch", "ignored"),
    [(padded, 0), (text_with_zeros, -1), (sequences, -1), (lambda step: sequences(step) // 5, -1)],
)
def test_padding_that_is_left_out_and_tokens_like_any_other_are_fine(
    batch: Callable[[int], Tensor], ignored: int, tmp_path: Path
) -> None:
    def step(model: nn.Module, s: Tensor) -> Tensor:
        return flat(model(s[:, :-1]), s[:, 1:], ignored)

    assert remarks_of(step, tmp_path, batch) == []


def test_points_of_no_known_class_are_no_class_that_is_left_out(tmp_path: Path) -> None:
    """Points, pixels and frames are more than the samples, and 0 is often what is unknown."""
    torch.manual_seed(0)
    model = nn.Linear(3, 4)
    optimizer = SGD(model.parameters(), lr=1e-3)
    with nbp.watch(model, optimizer, tmp_path / "a.zarr", [], budget=None) as run:
        for _ in range(12):
            scores = model(torch.rand(4, 2, 8, 3)).flatten(0, 2)
            loss = F.cross_entropy(scores, torch.arange(64) % 4, ignore_index=0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert [*run.alerts, *run.remarks] == []


@pytest.mark.parametrize(
    ("ignored", "is_of_tokens", "is_named"),
    [(0, False, True), (-100, False, False), (255, False, False), (0, True, False)],
)
def test_a_class_that_the_loss_leaves_out_is_a_remark(
    ignored: int, is_of_tokens: bool, is_named: bool, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    first: nn.Module = nn.EmbeddingBag(9, 4) if is_of_tokens else nn.Linear(8, 4)
    model = nn.Sequential(first, nn.Tanh(), nn.Linear(4, 4))
    optimizer = SGD(model.parameters(), lr=1e-3)
    with nbp.watch(model, optimizer, tmp_path / "a.zarr", [], budget=None) as run:
        for _ in range(12):
            given = torch.randint(9, (32, 5)) if is_of_tokens else torch.rand(32, 8)
            loss = F.cross_entropy(model(given), torch.arange(32) % 4, ignore_index=ignored)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    found = [(one.rule, one.step) for one in (*run.alerts, *run.remarks)]
    assert found == ([("class_ignored", 10)] if is_named else [])
    assert not is_named or "25% of the samples are of class 0" in run.remarks[0].text
