"""The benchmark of many architectures tells a twin that differs, and what it did not try."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from benchmarks import zoo
from benchmarks.zoo import architectures, trial
from benchmarks.zoo.apart import tried_apart
from benchmarks.zoo.architectures import Architecture, Made
from benchmarks.zoo.outcome import Outcome, read
from benchmarks.zoo.tried import page_of, read_tried
from tests.models import ConvNet, Encoder, Tied, mlp, words

MOST = 10**6


def architecture(kind: Callable[[], nn.Module], batch: Tensor) -> Architecture:
    return Architecture("own", "one", lambda: Made(kind(), (batch,)))


def inputs(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("kind", "batch"),
    [
        (mlp, inputs(5, 4)),
        (ConvNet, inputs(2, 1, 6, 6)),
        (Encoder, words(0)),
        (
            lambda: nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.ReLU(inplace=True)),
            inputs(5, 4),
        ),
    ],
)
def test_sound_architectures_are_equal_in_hundreds_of_values(
    kind: Callable[[], nn.Module], batch: Tensor
) -> None:
    outcome = trial.tried(architecture(kind, batch), MOST)
    assert (outcome.skipped, outcome.different) == ("", [])
    assert outcome.n_values >= 3 * 3 * outcome.n_modules / 2
    assert outcome.told == "equal"


class Watched(nn.Linear):
    """A layer that doubles its output while a run has a hook on it."""

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = super().forward(x)
        names = [type(hook).__module__ for hook in self._forward_hooks.values()]
        return found * 2 if any(name.startswith("notebook_probe") for name in names) else found


class Drawn(nn.Linear):
    """A layer that draws a random number while a run has a hook on it."""

    def forward(self, x: Tensor) -> Tensor:
        if any("notebook_probe" in type(hook).__module__ for hook in self._forward_hooks.values()):
            torch.rand(())
        found: Tensor = super().forward(x)
        return found


def test_what_watching_would_change_is_told() -> None:
    batch = inputs(5, 4)
    changed = trial.tried(architecture(lambda: Watched(4, 3), batch), MOST).different
    assert {"state 0 exp_avg", "state 1 exp_avg"} <= {*changed}
    assert any(one.startswith("step 0 output_mean of (root)") for one in changed)
    assert not any("nan" in one for one in changed)
    drawn = trial.tried(architecture(lambda: Drawn(4, 3), batch), MOST).different
    assert drawn == ["random numbers of torch"]


def test_a_wrong_value_is_told_with_the_right_one(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = trial._watched

    def wrong(made: Made) -> trial.Left:
        left = honest(made)
        left.values[1]["output_mean", "0"] *= 1.001
        del left.values[2]["grad_norm", "2"]
        return left

    monkeypatch.setattr(trial, "_watched", wrong)
    told = trial.tried(architecture(mlp, inputs(5, 4)), MOST).different
    assert [one.split(":")[0] for one in told] == [
        "step 1 output_mean of 0",
        "step 2 grad_norm of 2",
    ]


def test_what_is_too_large_or_does_not_train_is_no_failure() -> None:
    assert "too large" in trial.tried(architecture(mlp, inputs(5, 4)), 3).skipped
    outcome = trial.tried(architecture(mlp, inputs(5, 7)), MOST)
    assert outcome.skipped.startswith("does not train with small inputs here: RuntimeError")
    assert not outcome.is_bad


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork")
def test_a_trial_that_never_ends_or_dies_takes_no_other_with_it() -> None:
    class Endless(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            while True:
                pass

    class Dying(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            os._exit(3)

    batch = inputs(5, 4)
    late = tried_apart(architecture(lambda: Endless(4, 3), batch), MOST, limit_s=0.2)
    assert late.skipped == "takes longer than the limit: 0 s"
    dead = tried_apart(architecture(lambda: Dying(4, 3), batch), MOST, limit_s=5)
    assert dead.skipped == "the process ended"


def test_an_interrupted_benchmark_is_continued_and_its_results_are_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = [
        Architecture("own", f"net {i}", lambda: Made(mlp(), (inputs(5, 4),))) for i in range(3)
    ]
    monkeypatch.setattr(zoo, "architectures_of", lambda library: every)
    monkeypatch.setattr(
        zoo, "tried_apart", lambda one, most, limit: Outcome(one.library, one.name, n_values=7)
    )
    results = tmp_path / "zoo.jsonl"
    known = Outcome("own", "net 1", different=["step 0 calls of 1: 2, not 1"])
    results.write_text(json.dumps(known._asdict()) + "\n")
    zoo.run(chosen(results))
    assert sorted(one.name for one in read(results)) == ["net 0", "net 1", "net 2"]
    monkeypatch.setattr(zoo, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(zoo, "TRIED", tmp_path / "tried.json")
    zoo.run(chosen(results, save=True))
    page = (tmp_path / "page.md").read_text("utf-8")
    assert page == page_of(read_tried(tmp_path / "tried.json"))
    assert "| own | 3 | 3 | 2 | 0 | 14 |" in page
    assert "* own net 1: 1 differ: step 0 calls of 1: 2, not 1" in page
    assert "**own**: net 0, net 1, net 2" in page


def test_results_of_many_machines_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    every = [Architecture("own", name, lambda: Made(mlp())) for name in "abc"]
    monkeypatch.setattr(zoo, "architectures_of", lambda library: every)
    monkeypatch.setattr(zoo, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(zoo, "TRIED", tmp_path / "tried.json")
    tried: list[str] = []

    def equal(one: Architecture, most: int, limit: float) -> Outcome:
        tried.append(one.name)
        return Outcome(one.library, one.name, n_modules=2, n_values=5)

    monkeypatch.setattr(zoo, "tried_apart", equal)
    zoo.run(chosen(tmp_path / "1.jsonl", names=["a"]))
    zoo.run(chosen(tmp_path / "1.jsonl", save=True))
    zoo.run(chosen(tmp_path / "2.jsonl", new=True))
    zoo.run(chosen(tmp_path / "2.jsonl", save=True))
    zoo.run(chosen(tmp_path / "2.jsonl", save=True))  # once more, and it counts once
    assert sorted(tried) == ["a", "b", "c"]
    assert "| own | 3 | 3 | 3 | 6 | 15 |" in (tmp_path / "page.md").read_text("utf-8")


def test_what_differs_later_is_no_longer_equal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zoo, "architectures_of", lambda library: [])
    monkeypatch.setattr(zoo, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(zoo, "TRIED", tmp_path / "tried.json")
    for different in ([], ["calls of 1"]):
        results = tmp_path / "zoo.jsonl"
        outcome = Outcome("own", "net", different=different, n_values=5)
        results.write_text(json.dumps(outcome._asdict()) + "\n")
        zoo.run(chosen(results, save=True))
    assert "| own | 0 | 1 | 0 | 0 | 5 |" in (tmp_path / "page.md").read_text("utf-8")


def chosen(results: Path, **options: Any) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    zoo.add_arguments(parser)
    given = parser.parse_args(["--results", str(results), "--libraries", "timm"])
    return argparse.Namespace(**{**vars(given), **options})


def test_a_library_that_is_not_installed_has_no_architectures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing() -> Any:
        raise ModuleNotFoundError("none")

    monkeypatch.setitem(architectures.LIBRARIES, "timm", missing)
    assert architectures.architectures_of("timm") == []


def test_a_tied_weight_is_counted_at_each_of_its_places() -> None:
    outcome = trial.tried(architecture(Tied, words(0)), MOST)
    assert (outcome.skipped, outcome.different) == ("", [])
