"""Training on with a record that is there: the step counter follows, and events tell of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.record.format.resume import resume_at
from tests.models import floats, made, mlp, sgd, train, train_step
from tests.run.conftest import Watch

batch = floats(5, 4)
PROBES: dict[str, Any] = {"0": ["weight_norm", "output_norm"]}


def trained(folder: Path, steps: range, **where: Any) -> list[float]:
    """Train a new model for these steps; returns its true weight norms, step by step."""
    model, norms = made(mlp), []
    with nbp.watch(model, store=folder, probes=PROBES, **where):
        optimizer = sgd(model, lr=0.01 * (1 + steps.start))
        for step in steps:
            norms.append(float(model.get_parameter("0.weight").detach().double().norm()))
            train_step(model, optimizer, batch(step))
    return norms


def test_the_first_step_after_resuming_is_the_one_that_was_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = trained(tmp_path, range(10)), trained(tmp_path, range(4, 7), step=4)
    assert capsys.readouterr().out.splitlines()[1] == f"continuing {tmp_path} at step 4"
    series = nbp.open_run(tmp_path).series("0", "weight_norm")
    assert series.step.values.tolist() == [*range(7)]
    np.testing.assert_allclose(series, [*old[:4], *new], rtol=1e-6)


def test_steps_that_continuing_removes_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained(tmp_path, range(10))
    capsys.readouterr()
    for start, removed in (
        (4, ["removed 6 steps from step 4 to 9, which the record had"]),
        (6, ["removed step 6, which the record had"]),
        (7, []),
    ):
        trained(tmp_path, range(start, 7), step=start)
        head, *rest = capsys.readouterr().out.splitlines()
        assert (head, rest) == (f"continuing {tmp_path} at step {start}", removed)


def test_a_branch_shows_the_new_history_and_keeps_the_old(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = trained(tmp_path, range(10))
    new = trained(tmp_path, range(4, 7), step=4, branch=True)
    assert capsys.readouterr().out.splitlines()[1] == (
        f"continuing {tmp_path} at step 4 on branch 2"
    )
    for branch, norms in ((None, [*old[:4], *new]), (1, old), (2, [*old[:4], *new])):
        series = nbp.open_run(tmp_path, branch=branch).series("0", "weight_norm")
        np.testing.assert_allclose(series, norms, rtol=1e-6)


def test_a_live_run_on_a_branch_shows_its_open_step_too(watch: Watch, tmp_path: Path) -> None:
    trained(tmp_path / "0.zarr", range(10))
    model = made(mlp)
    run = watch(model, store=tmp_path / "0.zarr", step=4, branch=True, probes=PROBES)
    train(model, sgd(model), batch, range(2))
    assert run.status().step == 6
    assert run.data.step.values.tolist() == [*range(6)]
    assert run.to_xarray("tree")["every_1"].step.values.tolist() == [*range(10)]
    assert run.to_xarray("tree")["every_1.r2"].step.values.tolist() == [4, 5]


def test_a_run_on_a_branch_knows_the_line_that_an_earlier_process_left(
    watch: Watch, tmp_path: Path
) -> None:
    old = trained(tmp_path / "0.zarr", range(10))
    run = watch(made(mlp), store=tmp_path / "0.zarr", step=4, branch=True, probes=PROBES)
    assert run.parent is not None
    assert run.parent is run.parent
    [stream] = [one for one in run.parent.streams.values() if "0" in one.modules]
    norms = stream.values("weight_norm", 0, None, ["0"])
    np.testing.assert_allclose(norms[:, 0], old, rtol=1e-6)
    first = watch(made(mlp), store=tmp_path / "1.zarr", probes=PROBES)
    assert first.parent is None


def test_a_record_of_a_run_that_begins_later_begins_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained(tmp_path, range(1000, 1003), step=1000)
    assert capsys.readouterr().out == f"recording to {tmp_path} from step 1000 on\n"
    assert nbp.open_run(tmp_path).data.step.values.tolist() == [1000, 1001, 1002]


def test_events_tell_when_it_went_on_and_with_which_probes(tmp_path: Path) -> None:
    trained(tmp_path, range(3))
    model = made(mlp)
    with nbp.watch(model, store=tmp_path, probes=None, resume=True) as run:
        train_step(model, sgd(model), batch(0))
        handle = run.attach("2", "grad_norm")
        train_step(model, sgd(model), batch(1))
        handle.remove()
        train_step(model, sgd(model), batch(2))
    trained(tmp_path, range(2, 3), step=2)
    record = nbp.open_run(tmp_path)
    assert [(event.step, event.kind) for event in record.all_events] == [
        (3, "resume"),
        (4, "attach"),
        (5, "detach"),
        (2, "truncate"),
        (2, "resume"),
        (2, "attach"),
    ]
    assert [event.step for event in record.events] == [2, 2, 2], "no others were on its line"


def test_marks_are_those_of_the_line_that_is_looked_at(tmp_path: Path) -> None:
    def noted(steps: range, **where: Any) -> list[str]:
        model = made(mlp)
        with nbp.watch(model, store=tmp_path, probes=None, **where) as run:
            optimizer = sgd(model)
            words = [f"{step} of {where}" for step in steps]
            for step, word in zip(steps, words, strict=True):
                run.note("word", word)
                train_step(model, optimizer, batch(step))
            run.flush()
            assert run.events == nbp.open_run(tmp_path).events
            assert run.all_events == nbp.open_run(tmp_path).all_events
        return words

    def words(branch: int | None = None) -> list[str]:
        record = nbp.open_run(tmp_path, branch=branch)
        return [event.text for event in record.events if event.kind == "word"]

    first = noted(range(4))
    second = noted(range(2, 6), step=2, branch=True)
    third = noted(range(3, 4), step=3, branch=True)
    assert words(1) == first
    assert words(2) == first[:2] + second
    assert words() == words(3) == [*first[:2], *second[:1], *third]
    every = [event.text for event in nbp.open_run(tmp_path).all_events if event.kind == "word"]
    assert every == [*first, *second, *third]


def test_what_was_evaluated_at_the_end_is_not_evaluated_again(watch: Watch, tmp_path: Path) -> None:
    for resume in (None, True):
        model = made(mlp)
        run = watch(model, store=tmp_path / "0.zarr", probes=None, resume=resume)
        run.attach("0", "output_norm", phase="eval")
        model.eval()
        with torch.no_grad():
            model(batch(0))
        run.close()
        assert run.status().problem == ""
        assert run.data.step.values.tolist() == [0]


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ({"resume": True}, "resume=True"),
        ({"step": 3}, "step=3"),
        ({"branch": True}, "branch=True"),
        ({"resume": True, "step": 3, "branch": True}, "step=3, branch=True"),
    ],
)
def test_a_resumption_needs_a_store(where: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=rf"^{said} of which record\? give its store"):
        nbp.watch(made(mlp), **where)


@pytest.mark.parametrize(
    ("given", "new"),
    [
        ("branch(7)", "resume=True, step=7, branch=True"),
        ("branch", "resume=True, branch=True"),
    ],
)
def test_an_earlier_spelling_is_refused_with_the_new_one(given: Any, new: str) -> None:
    with pytest.raises(TypeError, match=rf"a step is expected; write {new}$"):
        nbp.watch(made(mlp), store="never.zarr", resume=given)


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ({"step": -1}, "step=-1: a step from 0"),
        ({"step": True}, "step=True: a whole number"),
        ({"step": 1.0}, r"step=1\.0: a whole number"),
        ({"branch": 3}, "branch=3: True or False is expected; step= says where"),
        ({"resume": "must"}, "resume='must': None, True, False or a step is expected$"),
        ({"resume": False, "branch": True}, "resume=False and branch=True: a branch continues"),
    ],
)
def test_what_says_no_place_to_continue_is_refused(where: dict[str, Any], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^{said}"):
        nbp.watch(made(mlp), store="never.zarr", **where)


def test_a_new_record_that_must_not_exist_begins_at_the_step(tmp_path: Path) -> None:
    trained(tmp_path, range(5, 7), resume=False, step=5)
    assert nbp.open_run(tmp_path).data.step.values.tolist() == [5, 6]


def test_the_differences_of_another_model_are_named(watch: Watch, tmp_path: Path) -> None:
    trained(tmp_path, range(2))
    wider = nn.Sequential(nn.Linear(4, 9), nn.ReLU(), nn.Linear(9, 2), nn.Tanh())
    with pytest.raises(nbp.RecordMismatchError) as refused:
        watch(wider, store=tmp_path, resume=True)
    assert "0 (Linear, 40 parameters there, Linear, 45 parameters given)" in str(refused.value)
    assert "not there: 3 (Tanh)" in str(refused.value)


def test_a_model_that_got_a_layer_while_it_was_watched_can_be_resumed(tmp_path: Path) -> None:
    for resume in (None, True):
        model = made(mlp)
        probes = {"*": ["weight_norm"]}
        with nbp.watch(model, store=tmp_path, probes=probes, resume=resume) as run:
            train_step(model, sgd(model), batch(0))
            model.append(nn.Linear(2, 2))
            train(model, sgd(model), batch, range(2))
            assert not run.series("3", "weight_norm").isnull().any()
    assert nbp.open_run(tmp_path).series("3", "weight_norm").step.values.tolist() == [1, 2, 4, 5]


@pytest.mark.slow
def test_the_page_about_going_on_runs_as_it_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pages = Path(__file__).parents[2] / "docs" / "how_to"
    text = "".join((pages / name).read_text("utf-8") for name in ("model.md", "continuing.md"))
    names: dict[str, object] = {}
    for block in re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE):
        exec(block, names)  # the pages' own code
    record = nbp.open_run("runs/first.zarr")
    assert record.series("", "test_accuracy").values.tolist() == [0.5]
    assert record.series("1", "eval_zero_fraction").step.values.tolist() == [6]
    assert record.series("0", "rank").values.tolist() == [4, 4, 3]


def test_a_number_is_short_for_the_step() -> None:
    assert resume_at(300) == resume_at(None, step=300)
    with pytest.raises(TypeError, match="resume=300"):
        resume_at(300, step=200)
