"""A panel whose run is left for a branch: it goes over, and its views begin anew by themselves."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import notebook_probe as nbp
from notebook_probe.explorer import Panel
from notebook_probe.train import Checkpoints, Loop, Trainer
from tests.explorer.test_on_a_run import View


def loop_in(folder: Path) -> tuple[Loop, list[Any]]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    loop = Loop(Trainer(model, torch.nn.functional.cross_entropy, optimizer))
    loop.add(Checkpoints(folder / "kept", every=3))
    loop.watch(store=folder / "run.zarr", probes="default", budget=None)
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(4, 6, 3, generator=generator)
    return loop, [(one, torch.tensor([0, 1] * 3)) for one in x]


def view_of(loop: Loop) -> tuple[Panel, View]:
    run = loop.run
    assert run is not None
    panel = run._open_panel()
    view = View(run, run.controls)
    view._conversation = panel._session
    view.says("hello", view="x")
    return panel, view


@pytest.mark.slow
def test_a_rewind_from_code_takes_the_panel_along(tmp_path: Path) -> None:
    loop, data = loop_in(tmp_path)
    panel, view = view_of(loop)
    loop.run_epochs(data, 2)
    view.looks()
    view.selects(home="grad_norm", series=[("0", "grad_norm")], smooth=0.5)
    assert view.heard["status"]["step"] == 8
    first = loop.run
    run = loop.rewind(3)
    assert run is not None
    assert first is not None
    assert run._open_panel() is panel
    assert first._panel is None
    view._conversation = panel._session
    view.heard = {"status": {}}
    status = view.looks()
    assert (status["step"], status["state"]) == (3, "idle")
    assert {"model", "selection", "alerts", "history", "heat", "lines"} <= {*view.heard}
    assert view.heard["selection"]["home"] == "grad_norm"
    assert view.heard["selection"]["smooth"] == 0.5
    assert view.heard["heat"]["last_step"] == 2
    run.close()


def wait_for(told: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not told():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.slow
def test_a_click_on_a_held_loop_in_the_background_is_answered_across_the_branch(
    tmp_path: Path,
) -> None:
    never, data = loop_in(tmp_path / "never")
    never.run_epochs(data, 3)
    assert never.run is not None
    losses = never.run.series("", "loss").values.tolist()
    never.run.close()

    loop, data = loop_in(tmp_path / "sent")
    panel, view = view_of(loop)
    first = loop.run
    assert first is not None
    first.pause_when(step=10)
    training = loop.start(data, epochs=3)
    wait_for(lambda: first.controls.status_head().state == "paused")

    def kept() -> list[int]:
        view.looks()
        return [row["step"] for row in view.heard["history"]["checkpoints"]]

    wait_for(lambda: kept() == [3, 6, 9])  # a thread writes them
    assert view.heard["status"]["state"] == "paused"
    assert view.heard["history"]["way"]["why_not"] == ""
    click = {"step": 3, "preset": "alerts", "schedule": "every(1)", "until": 5, "rate": None}
    view.says("rewind", id="x-1", **click, pause_at=5)

    def paused_on_branch() -> bool:
        run = loop.run
        return run not in (None, first) and run.controls.status_head().state == "paused"

    wait_for(paused_on_branch)
    panel.refresh()
    view._conversation = panel._session
    view.says("hello", view="x")
    status = view.looks()
    (ticket,) = status["tickets"]
    assert (ticket["id"], ticket["state"], ticket["applied_step"]) == ("x-1", "applied", 10)
    assert ticket["text"] == "rewound to 3; alerts until 5"
    assert (status["state"], status["step"]) == ("paused", 5)
    told = view.heard["history"]
    assert (told["branch"], told["fork"], told["left"]["to"]) == (2, 3, 10)
    assert [row["step"] for row in told["checkpoints"]] == [3]
    assert [row["step"] for row in told["left"]["checkpoints"]] == [6, 9]
    assert view.heard["heat"]["last_step"] == 4
    assert view.heard["left_heat"]["last_step"] == 9
    (left,) = [one for one in view.heard["left_lines"]["series"] if one["quantity"] == "loss"]
    assert (left["first_step"], left["last_step"]) == (
        2,
        9,
    )  # it leaves the last step before the fork
    run = loop.run
    assert run is not None
    for breakpoint in run.breakpoints:
        breakpoint.remove()
    run.resume()
    training.wait(60)
    assert run.series("", "loss").values.tolist() == losses
    run.close()
    left_record = nbp.open_run(tmp_path / "sent" / "run.zarr", branch=1)
    assert left_record.series("", "loss").values.tolist() == losses[:10]


def test_a_loop_in_a_blocking_cell_says_why_it_cannot_go_back_until_it_has_ended(
    tmp_path: Path,
) -> None:
    loop, data = loop_in(tmp_path)
    _, view = view_of(loop)
    told: list[str] = []

    def look(loop: Loop, metrics: Any) -> None:
        view.looks()
        told.append(view.heard["history"]["way"]["why_not"])

    loop.on_step(look)
    loop.run_epochs(data, 1)
    assert {*told} == {"The loop must be paused or in the background to go back"}
    view.looks()
    way = view.heard["history"]["way"]
    assert (way["why_not"], way["until"]) == ("", loop.n_updates)
    assert loop.run is not None
    loop.run.close()


def test_a_bare_loop_has_no_strip_and_no_way(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 2)
    run = nbp.watch(model, store=tmp_path / "run.zarr", probes=None)
    view = View(run, run.controls)
    view.looks()
    assert view.heard["history"]["checkpoints"] == []
    assert view.heard["history"]["way"] is None
    run.close()


@pytest.mark.slow
def test_an_open_widget_goes_over_by_its_own_thread(tmp_path: Path) -> None:
    loop, data = loop_in(tmp_path)
    assert loop.run is not None
    explorer = loop.run.explorer
    loop.run_epochs(data, 1)
    panel = loop.run._open_panel()
    explorer.home = "weight_norm"
    run = loop.rewind(3)
    assert run is not None
    wait_for(lambda: panel._session._source is run)
    assert run.explorer is explorer
    assert panel._session.looked_at["home"] == "weight_norm"
    assert run.controls.is_shown
    explorer.close()
    assert not run.controls.is_shown
    run.close()
