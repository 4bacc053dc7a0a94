"""A loop that is asked to go back between two steps, as a click does it, goes on as a branch."""

import warnings
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

import notebook_probe as nbp
from notebook_probe.run.attach.requests import Control, Request, Ticket
from notebook_probe.run.going_back.requests import EvaluateAt, GoBack
from notebook_probe.train import Checkpoints, Loop
from tests.train.checkpoints.kinds import loop_of, same_state
from tests.train.conftest import a_loop, batches, small_model

EPOCHS = 3  # of 4 batches
STEPS = 12
QUIET: dict[str, Any] = {"probes": None, "budget": None}


def kept(tmp_path: Path, kind: str = "mlp", **options: Any) -> tuple[Loop, Any]:
    """A loop that is recorded and keeps every third state."""
    loop, data = loop_of(kind)
    loop.add(Checkpoints(tmp_path / "kept", every=3))
    loop.watch(store=tmp_path / "run.zarr", **{**QUIET, **options})
    return loop, data


def plain(tmp_path: Path, n: int = 4, **options: Any) -> tuple[Loop, Any]:
    """The same without a scheduler."""
    loop = a_loop()
    loop.add(Checkpoints(tmp_path / "kept", every=3))
    loop.watch(store=tmp_path / "run.zarr", **{**QUIET, **options})
    return loop, batches(n)


def ask_at(loop: Loop, step: int, request: Request) -> list[Ticket]:
    """Put a request in the midst of a step, once; its ticket is there afterwards."""
    tickets: list[Ticket] = []

    def put(loop: Loop, metrics: Any) -> None:
        if loop.n_updates == step and not tickets:
            assert loop.run is not None
            tickets.append(loop.run.controls.put(request))

    loop.on_step(put, priority=200)
    return tickets


def run_of(loop: Loop) -> nbp.Run:
    assert loop.run is not None
    return loop.run


@pytest.mark.slow
@pytest.mark.parametrize("asked_at", [4, 6, 9, 11])
@pytest.mark.parametrize("whole", [True, False])
def test_what_goes_on_after_the_way_back_is_what_had_never_been_interrupted(
    tmp_path: Path, asked_at: int, whole: bool
) -> None:
    amount = {"epochs": EPOCHS} if whole else {"steps": STEPS}
    begin = kept if whole else partial(plain, n=STEPS)
    never, data = begin(tmp_path / "never")
    never.start(data, **amount).wait()
    losses = run_of(never).series("", "loss").values.tolist()
    run_of(never).close()

    loop, data = begin(tmp_path / "sent")
    first = run_of(loop)
    tickets = ask_at(loop, asked_at, GoBack(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loop.start(data, **amount).wait()
    run = run_of(loop)
    assert tickets[0].state == "applied", tickets[0].text
    assert tickets[0].applied_step == asked_at
    assert tickets[0].text == "rewound to 3"
    assert first.closed
    assert run is not first
    assert run.series("", "loss").values.tolist() == losses
    assert run.series("", "loss").step.values.tolist() == [*range(STEPS)]
    assert same_state(loop.trainer.state_dict(), never.trainer.state_dict())
    run.close()
    left = nbp.open_run(tmp_path / "sent" / "run.zarr", branch=1)
    assert left.series("", "loss").step.values.tolist() == [*range(asked_at)]
    assert left.series("", "loss").values.tolist() == losses[:asked_at]


def test_a_held_loop_goes_back_in_the_cell_that_trains_and_is_held_again_where_asked(
    tmp_path: Path,
) -> None:
    loop, data = kept(tmp_path)
    first = run_of(loop)
    first.pause_when(step=8)
    held: list[int] = []

    def pump() -> None:
        """As a panel is called while the loop is held."""
        run = run_of(loop)
        if run.controls.status_head().state != "paused":
            return
        held.append(run.controls.open_step)
        if run is first:
            tickets.append(run.controls.put(GoBack(6, pause_at=7)))
        else:
            run.resume()

    def follow(run: nbp.Run | None) -> None:
        if run not in (None, first):
            run.controls.each_boundary(pump)

    tickets: list[Ticket] = []
    first.controls.each_boundary(pump)
    loop.on_start(lambda loop, data: follow(loop.run))
    loop.run_epochs(data, EPOCHS)
    run = run_of(loop)
    assert {one.text for one in tickets} <= {"rewound to 6", "the run is closed"}
    assert [*dict.fromkeys(held)] == [8, 7]
    assert [one.condition.text for one in run.breakpoints] == ["at step 8", "at step 7"]
    assert run.series("", "loss").step.values.tolist() == [*range(STEPS)]
    run.close()


@pytest.mark.slow
@pytest.mark.parametrize("in_background", [False, True])
def test_held_before_an_update_it_goes_back_at_once_and_all_is_as_it_was(
    tmp_path: Path, in_background: bool
) -> None:
    never, data = plain(tmp_path / "never", n=STEPS)
    never.run_steps(data, STEPS)
    loop, data = plain(tmp_path / "sent", n=STEPS, probes={"0": ["grad_norm"]})
    first = run_of(loop)
    tickets: list[Ticket] = []

    def arm(loop: Loop, metrics: Any) -> None:
        if loop.loop_step == 7 and run_of(loop) is first:
            first.pause_when("0", "grad_norm", "> 0", before="update")

    def pump() -> None:
        if first.controls.status_head().state == "paused" and not tickets:
            assert first.controls.status_head().within_step
            tickets.append(first.controls.put(EvaluateAt(3)))
            tickets.append(first.controls.put(GoBack(6)))

    def follow(run: nbp.Run | None) -> None:
        """What holds goes on along the branch."""
        if run is not None and run is not first:
            run.controls.each_boundary(partial(let_go, run))

    def let_go(run: nbp.Run) -> None:
        if run.controls.status_head().state == "paused":
            run.resume()

    loop.on_step(arm)
    loop.on_start(lambda loop, data: follow(loop.run))
    first.controls.each_boundary(pump)
    if in_background:
        loop.start(data, steps=STEPS).wait()
    else:
        loop.run_steps(data, STEPS)
    run = run_of(loop)
    evaluated, back = tickets
    assert (back.state, back.text, back.applied_step) == ("applied", "rewound to 6", 8)
    assert evaluated.text == "the run is closed", "of what was left nothing is measured"
    assert run is not first
    assert run.series("", "loss").step.values.tolist() == [*range(STEPS)]
    assert same_state(loop.trainer.state_dict(), never.trainer.state_dict())
    run.close()
    run_of(never).close()


def test_held_by_an_exception_it_goes_back_instead_of_raising_it(tmp_path: Path) -> None:
    loop, data = plain(tmp_path, n=STEPS)
    first = run_of(loop)
    first.pause_when(error=True)
    tickets: list[Ticket] = []
    asked = [GoBack(99), GoBack(3)]  # one that cannot be: it is held on

    def raise_once(loop: Loop, metrics: Any) -> None:
        if loop.loop_step == 7 and run_of(loop) is first:
            raise FloatingPointError("once")

    def pump() -> None:
        if first.controls.status_head().state == "paused" and asked:
            tickets.append(first.controls.put(asked.pop(0)))

    loop.on_step(raise_once)
    first.controls.each_boundary(pump)
    loop.run_steps(data, STEPS)
    run = run_of(loop)
    assert [one.state for one in tickets] == ["refused", "applied"]
    assert loop.n_updates == STEPS
    assert run.series("", "loss").step.values.tolist() == [*range(STEPS)]
    run.close()


def test_what_raises_outside_the_loop_is_raised_as_ever(tmp_path: Path) -> None:
    loop, data = plain(tmp_path, n=STEPS)
    run = run_of(loop)
    run.pause_when(error=True)
    tickets: list[Ticket] = []

    def train() -> None:
        loop.run_steps(data, 4)
        raise FloatingPointError("after it")

    def pump() -> None:
        if run.controls.status_head().state == "paused":
            tickets.append(run.controls.put(GoBack(3)))
            run.resume()

    run.controls.each_boundary(pump)
    with pytest.raises(FloatingPointError, match="after it"):
        run.train_in_background(train).wait()
    assert tickets[0].state == "refused"
    assert "loop.rewind" in tickets[0].text
    run.close()


@pytest.mark.slow
def test_what_was_measured_what_holds_and_the_rules_go_on(tmp_path: Path) -> None:
    loop, data = plain(tmp_path, probes={"0": ["weight_norm"], "3": [["grad_norm", "every(2)"]]})
    first = run_of(loop)
    first.attach("0", "update_ratio", "every(1)")
    first.detach("3", "grad_norm")
    loss = first.pause_when("", "loss", "> 1000")
    loss.armed = False
    first.rules.edit("dead_units", most=0.25)
    del first.rules["lr_high"]
    ask_at(loop, 7, GoBack(6, preset="alerts", schedule="every(2)", until=10, rate=0.005))
    loop.start(data, epochs=EPOCHS).wait()
    run = run_of(loop)
    places = {(one.module, one.quantity, one.schedule) for one in run.probes()}
    asked = {one for one in places if "between" in one[2]}
    assert places - asked == {("0", "weight_norm", "every(1)"), ("0", "update_ratio", "every(1)")}
    assert {one[2] for one in asked} == {"every(2) & between(6, 10)"}
    dense = run.series("0", "nonfinite_fraction")
    assert dense.step.values.tolist() == [6, 8]
    assert [(one.condition.text, one.armed) for one in run.breakpoints] == [("loss > 1000", False)]
    assert run.rules["dead_units"].numbers["most"] == 0.25
    assert "lr_high" not in run.rules
    sets = [(one.step, one.text) for one in run.events if one.kind == "set"]
    assert [step for step, _ in sets] == [6]
    assert loop.trainer.optimizer.param_groups[0]["lr"] == 0.005
    run.close()


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (GoBack(2), "no checkpoint at or before step 2"),
        (GoBack(50), "the training is at 7"),
        (GoBack(3, preset="nothing_such"), "nothing_such"),
        (GoBack(3, preset="alerts", schedule="evry(3)"), "evry(3)"),
        (GoBack(3, preset="alerts", until=3), "one after 3"),
        (GoBack(3, pause_at=2), "from 3 on"),
        (GoBack(3, rate=-1.0), "a positive number"),
        (EvaluateAt(3), "run.probe_batch"),
    ],
)
def test_what_cannot_be_is_refused_in_words_and_training_goes_on(
    tmp_path: Path, request_: Request, why: str
) -> None:
    loop, data = kept(tmp_path)
    first = run_of(loop)
    tickets = ask_at(loop, 7, request_)
    loop.start(data, epochs=EPOCHS).wait()
    assert tickets[0].state == "refused"
    assert why in tickets[0].text
    assert run_of(loop) is first
    assert first.series("", "loss").step.values.tolist() == [*range(STEPS)]
    first.close()


def test_a_loop_in_a_blocking_cell_is_not_sent_back(tmp_path: Path) -> None:
    loop, data = kept(tmp_path)
    tickets = ask_at(loop, 7, GoBack(6))
    loop.run_epochs(data, EPOCHS)
    assert tickets[0].text == "The loop must be paused or in the background to go back"
    run_of(loop).close()


def test_a_bare_loop_has_no_way_back(tmp_path: Path) -> None:
    model = small_model()
    run = nbp.watch(model, store=tmp_path / "run.zarr", **QUIET)
    assert run.controls.restores == ""
    ticket = run._parts.put_between_steps(GoBack(3))
    assert ticket.text == "this loop keeps no states that it could go back to"
    run.close()


def test_a_checkpoint_of_another_model_is_refused_with_the_differences(tmp_path: Path) -> None:
    loop, data = kept(tmp_path)
    tickets = ask_at(loop, 7, GoBack(6))
    first = run_of(loop)

    def grow(loop: Loop, metrics: Any) -> None:
        if loop.n_updates == 7:
            loop.trainer.model.register_parameter("more", torch.nn.Parameter(torch.zeros(2)))

    loop.on_step(grow)
    loop.start(data, epochs=EPOCHS).wait()
    assert tickets[0].state == "refused"
    assert "does not fit" in tickets[0].text
    assert "more" in tickets[0].text
    first.close()


def test_only_evaluating_leaves_the_training_as_it_was(tmp_path: Path) -> None:
    never, data = kept(tmp_path / "never")
    never.run_epochs(data, EPOCHS)
    run_of(never).close()
    loop, data = kept(tmp_path / "sent", probes={"0": ["weight_norm", "output_std"]})
    x, y = batches(1, size=8, seed=5)[0]
    run_of(loop).probe_batch(x, y, torch.nn.functional.cross_entropy)
    tickets = ask_at(loop, 7, EvaluateAt(6))
    states: dict[int, Any] = {}

    def keep(loop: Loop, metrics: Any) -> None:
        if loop.n_updates == 6:
            states[6] = {k: v.clone() for k, v in loop.trainer.model.state_dict().items()}

    loop.on_step(keep)
    loop.start(data, epochs=EPOCHS).wait()
    run = run_of(loop)
    assert (tickets[0].state, tickets[0].text) == ("applied", "measured 1 series of step 6")
    assert same_state(loop.trainer.state_dict(), never.trainer.state_dict())
    found = run.series("0", "eval_output_std").dropna("step")
    assert found.step.values.tolist() == [6]
    weight, bias = states[6]["0.weight"].double(), states[6]["0.bias"].double()
    expected = (x.double() @ weight.T + bias).std()
    assert found.values[0] == pytest.approx(float(expected), rel=1e-5)
    run.close()


def test_waiting_for_a_step_and_stop_follow_the_loop_onto_the_branch(tmp_path: Path) -> None:
    loop, data = plain(tmp_path)
    first = run_of(loop)
    ask_at(loop, 7, GoBack(3))
    training = loop.start(data, epochs=1000)
    training.wait(60, step=40)
    assert run_of(loop) is not first
    assert run_of(loop).controls.status_head().background
    training.stop()
    training.wait(60)
    assert training.stopped is False  # the loop returns by itself
    assert loop.stopped
    run_of(loop).close()


def test_a_way_back_that_fails_is_raised_where_the_training_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, data = plain(tmp_path)
    first = run_of(loop)
    tickets = ask_at(loop, 7, GoBack(6))

    def fails(*args: Any) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(loop.kept, "load_before", fails)
    training = loop.start(data, epochs=EPOCHS)
    with pytest.raises(OSError, match="the disk is full"):
        training.wait(30)
    assert tickets[0].state == "applied"
    assert first.closed
    assert first.series("", "loss").step.values.tolist() == [*range(7)]


def test_a_stop_on_the_way_back_counts_on_the_branch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, data = plain(tmp_path)
    ask_at(loop, 7, GoBack(6))
    load = loop.kept.load_before

    def load_and_stop(step: int) -> Any:
        training.stop()
        return load(step)

    monkeypatch.setattr(loop.kept, "load_before", load_and_stop)
    training = loop.start(data, epochs=EPOCHS)
    training.wait(30)
    assert (loop.stopped, loop.loop_step) == (True, 6)
    run_of(loop).close()


def test_a_stop_beside_a_way_back_is_a_stop(tmp_path: Path) -> None:
    loop, data = plain(tmp_path)
    first = run_of(loop)
    ask_at(loop, 7, GoBack(6))
    ask_at(loop, 7, Control("stop"))
    loop.start(data, epochs=EPOCHS).wait(30)
    assert run_of(loop) is first
    assert (loop.stopped, loop.loop_step) == (True, 7)
    first.close()
