"""A live run that is compared with good ones: the alert, what is left in peace, and its limits."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import SGD

import notebook_probe as nbp
from notebook_probe.errors import NotApplicableError, RecordFormatError
from notebook_probe.explorer.messages.alert_rows import AlertMessages
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.explorer.messages.shown_alert import showing
from notebook_probe.run.attach.requests import CompareWith
from tests.run.conftest import Watch

pytestmark = pytest.mark.xdist_group("reference")  # one process makes what they share

N = 24
RULE = "differs_from_reference"


def net(seed: int) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(
        *(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 2))
    )


def widen(model: nn.Sequential) -> None:
    """Begin with weights of a layer that are five times as large."""
    with torch.no_grad():
        next(model[2].parameters()).mul_(5)


def train(model: nn.Module, run: nbp.Run, seed: int, lr: float = 0.05, n: int = N) -> None:
    generator = torch.Generator().manual_seed(seed)
    optimizer = SGD([one for one in model.parameters() if one.requires_grad], lr)
    for _ in range(n):
        x = torch.randn(32, 8, generator=generator)
        loss = nn.functional.cross_entropy(model(x), (x[:, 0] * x[:, 1] > 0).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.log(loss=loss)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A pattern of four healthy seeds."""
    folder = tmp_path_factory.mktemp("good")
    for seed in range(4):
        model = net(seed)
        with nbp.watch(model, store=folder / f"good-{seed}.zarr", budget=None) as run:
            train(model, run, seed)
    return str(folder / "good-*.zarr")


def test_a_further_healthy_seed_is_not_accused(watch: Watch, good: str) -> None:
    for seed in (10, 11):
        model = net(seed)
        run = watch(model, reference=good)
        train(model, run, seed)
        assert not run.alerts.of(RULE)
        assert not run.remarks
        assert not run.find_differences().found


def test_a_layer_with_another_start_is_named_once_with_its_quantity_step_and_ratio(
    watch: Watch, good: str
) -> None:
    model = net(12)
    widen(model)
    run = watch(model, reference=good)
    train(model, run, 12)
    [alert] = run.alerts.of(RULE)
    assert (alert.step, alert.modules, alert.quantities) == (0, ("2",), ("weight_norm",))
    assert alert.text.startswith("2: weight_norm is ×")
    assert "that of 4 reference runs" in alert.text
    train(model, run, 13)
    assert len(run.alerts.of(RULE)) == 1
    run.close()
    opened = nbp.open_run(run.location)
    assert [*opened.alerts.of(RULE)] == [alert]
    first = opened.find_differences().first  # the record names the references
    assert first is not None
    assert (first.module, first.quantity, first.step) == ("2", "weight_norm", 0)


def test_references_are_chosen_and_dismissed_while_the_run_trains(watch: Watch, good: str) -> None:
    model = net(12)
    widen(model)
    run = watch(model)
    train(model, run, 12)
    assert not run.alerts.of(RULE)
    places = tuple(str(one) for one in sorted(Path(good).parent.glob(Path(good).name)))
    refused = run.controls.put(CompareWith((*places, "a.zarr")))
    chosen = run.controls.put(CompareWith(places))
    train(model, run, 13, n=1)
    assert (refused.state, chosen.state) == ("refused", "applied")
    assert refused.text.endswith("5 references; allowed: up to 4")
    assert chosen.text == "compared with good-0, good-1, good-2, good-3"
    [alert] = run.alerts.of(RULE)  # of what was recorded before they were chosen
    assert (alert.step, alert.quantities) == (0, ("weight_norm",))
    assert run.find_differences().found
    dismissed = run.controls.put(CompareWith(()))
    train(model, run, 14, n=1)
    assert dismissed.text == "compared with no run"
    run.close()
    with pytest.raises(NotApplicableError):
        nbp.open_run(run.location).find_differences()


def test_a_chosen_reference_that_is_gone_ends_no_training(watch: Watch, tmp_path: Path) -> None:
    model = net(12)
    run = watch(model)
    run.controls.put(CompareWith((str(tmp_path / "gone.zarr"),)))
    train(model, run, 12, n=2)
    run.controls.settle()
    run.close()
    [error] = [event.text for event in run.events if event.kind == "error"]
    assert error.startswith("references are not compared: RecordFormatError: ")


def test_a_learning_rate_of_ten_times_is_an_update_that_differs(watch: Watch, good: str) -> None:
    model = net(14)
    run = watch(model, reference=good)
    train(model, run, 14, lr=0.5)
    [alert] = run.alerts.of(RULE)
    assert alert.quantities == ("update_ratio",)
    assert "×10" in alert.text or "×9" in alert.text


def test_a_frozen_layer_is_named_by_the_gradient_that_it_lacks(watch: Watch, good: str) -> None:
    model = net(15)
    model[2].requires_grad_(False)
    run = watch(model, reference=good)
    train(model, run, 15)
    [alert] = run.alerts.of(RULE)
    assert alert.module == "2"
    assert "grad_norm has no value" in alert.text


def test_another_module_is_a_remark(watch: Watch, good: str) -> None:
    model = net(16)
    model[3] = nn.LeakyReLU(0.001)
    run = watch(model, reference=good)
    train(model, run, 16)
    assert not run.alerts.of(RULE)
    [remark] = run.remarks
    assert remark.sentence == "3 is LeakyReLU, in the references ReLU"


def test_the_alert_comes_while_the_loop_runs_and_from_the_writers_thread(
    watch: Watch, good: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("notebook_probe.run.facts.reference_watch.PERIOD_S", 0.0)
    model = net(12)
    widen(model)
    run = watch(model, reference=good)
    train(model, run, 12)
    run.flush()
    assert [event.kind for event in run.events].count("alert") >= 1


def test_the_panel_shows_the_alert_with_the_series_that_differs(watch: Watch, good: str) -> None:
    model = net(12)
    widen(model)
    run = watch(model, reference=good)
    train(model, run, 12)
    alert = next(one for one in run.alerts.of(RULE))
    message = AlertMessages().message(run.events)
    assert message is not None
    [row] = [one for one in message["rows"] if one["rule"] == RULE]
    assert (row["modules"], row["quantities"]) == (["2"], ["weight_norm"])
    shown = showing(alert, {"weight_norm": ["0", "2", "4"]}, PanelSelection())
    assert shown["series"] == (("2", "weight_norm"),)
    assert shown["home"] == "weight_norm"


def test_an_explanation_has_the_rule_only_where_there_are_references(
    watch: Watch, good: str
) -> None:
    for options, looked in ((dict[str, Any](), False), ({"reference": good}, True)):
        model = net(18)
        run = watch(model, **options)
        train(model, run, 18)
        run.close()
        for one in (run, nbp.open_run(run.location)):
            assert (RULE in one.explain().well) is looked


def test_a_resumed_run_has_no_second_alert(watch: Watch, good: str, tmp_path: Path) -> None:
    store = tmp_path / "resumed.zarr"
    for resume in (None, True):
        model = net(12)
        widen(model)
        run = watch(model, store=store, reference=good, resume=resume)
        train(model, run, 12)
        run.close()
        assert len(run.alerts.of(RULE)) == 1
    assert max(run.series("2", "weight_norm").step) == 2 * N - 1


def test_nothing_is_compared_without_the_rule(watch: Watch, good: str) -> None:
    model = net(12)
    widen(model)
    run = watch(model, reference=good)
    del run.rules[RULE]
    train(model, run, 12)
    assert not run.alerts.of(RULE)


def test_another_smallest_ratio_is_a_number_of_the_rule(watch: Watch, good: str) -> None:
    model = net(12)
    widen(model)
    run = watch(model, reference=good)
    run.rules.edit(RULE, factor=100.0)
    train(model, run, 12)
    assert not run.alerts.of(RULE)
    run.rules.edit(RULE, factor=4.0)
    assert run.alerts.of(RULE)


def test_a_reference_that_vanishes_ends_the_comparison_and_nothing_else(
    watch: Watch, good: str, tmp_path: Path
) -> None:
    model = net(3)
    with nbp.watch(model, store=tmp_path / "one.zarr", budget=None) as one:
        train(model, one, 3)
    model = net(17)
    run = watch(model, reference=tmp_path / "one.zarr")
    (tmp_path / "one.zarr").rename(tmp_path / "gone.zarr")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train(model, run, 17)
        assert not run.alerts.of(RULE)
        run.close()


def test_what_is_no_reference_is_refused_before_anything_is_made(
    watch: Watch, tmp_path: Path
) -> None:
    store = tmp_path / "new.zarr"
    with pytest.raises(RecordFormatError, match="no record exists there"):
        watch(net(0), store=store, reference=str(tmp_path / "no-*.zarr"))
    assert not store.exists()


def test_who_asks_without_references_is_told_how(watch: Watch) -> None:
    with pytest.raises(NotApplicableError, match="no good run is known"):
        watch(net(0)).find_differences()


def test_the_training_is_equal_bit_for_bit_with_references(watch: Watch, good: str) -> None:
    ends = []
    for options in (dict[str, Any](), {"reference": good}):
        model = net(20)
        run = watch(model, **options)
        train(model, run, 20)
        run.close()
        ends.append([one.clone() for one in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*ends, strict=True))
