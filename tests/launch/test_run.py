"""``nbp run`` changes nothing of a program, and records the model that it trains."""

from __future__ import annotations

import os
import shlex
import signal
from pathlib import Path

import pytest

import notebook_probe as nbp
from notebook_probe.command_line import main
from tests.launch.programs import ROOT, TRAINING, plainly, under_nbp, under_warm_nbp
from tests.run.programs import Programs

pytestmark = pytest.mark.slow


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "train.py"
    path.write_text(TRAINING)
    return str(path)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["3", "--lr", "1", "--store", "x", "--", "-h"], 3),
        (["raise"], 1),
        (["kill", "SIGTERM"], -signal.SIGTERM),
        (["kill", "SIGINT"], -signal.SIGINT),
    ],
)
def test_output_weights_traceback_and_exit_code_are_those_of_plain_python(
    tmp_path: Path, script: str, words: list[str], code: int
) -> None:
    plain = plainly(tmp_path, script, *words)
    watched = under_nbp(tmp_path, "--store", "runs/first.zarr", script, *words)
    assert watched.own == plain.own
    assert plain.code == code
    assert watched.told[0] == "recording to runs/first.zarr"
    record = nbp.open_run(tmp_path / "runs" / "first.zarr")
    if code == -signal.SIGTERM:  # at once, while rows of the last second wait
        assert len(watched.told) == 1
        assert not record.finished
    else:
        assert watched.told[1] == "the record is runs/first.zarr; see:"
        losses = record.series("", "backward_loss")
        assert losses.step.values.tolist() == [*range(30)], "the first step, too"


def test_a_module_runs_as_python_m_does_and_the_next_commands_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / "__init__.py").write_text("")
    (tmp_path / "lab" / "__main__.py").write_text(TRAINING)
    words = ["-m", "lab", "0", "--lr", "--", "-m", "x"]
    plain = plainly(tmp_path, *words)
    watched = under_nbp(tmp_path, "--name", "lab", *words)
    assert watched.own == plain.own
    assert plain.code == 0
    monkeypatch.chdir(tmp_path)
    commands = [shlex.split(one) for one in watched.told if one.startswith("  nbp ")]
    assert [one[1] for one in commands] == ["explain", "tree", "series"]
    assert [main(one[1:]) for one in commands] == [0, 0, 0]


def test_a_program_in_a_child_process_is_watched_and_reported_once(
    tmp_path: Path, script: str, programs: Programs
) -> None:
    parent = f"import subprocess, sys\nsys.exit(subprocess.call([sys.executable, {script!r}, '5']))"
    (tmp_path / "launch.py").write_text(parent)
    watched = under_warm_nbp(
        programs, tmp_path, "launch.py", NOTEBOOK_PROBE_STORE="runs/child.zarr"
    )
    assert watched.code == 5
    assert watched.told[:2] == [
        "recording to runs/child.zarr",
        "the record is runs/child.zarr; see:",
    ]
    assert len(watched.told) == 5


def test_options_come_from_flags_before_the_environment(
    tmp_path: Path, script: str, programs: Programs
) -> None:
    flags = ["--store", "b.zarr", "--name", "mine", "--probes", "default,optimizer", "--alerts"]
    watched = under_warm_nbp(
        programs,
        tmp_path,
        *flags,
        "--budget",
        "none",
        script,
        "0",
        NOTEBOOK_PROBE_STORE="a.zarr",
        NOTEBOOK_PROBE_BUDGET="1",
    )
    assert watched.code == 0
    assert not (tmp_path / "a.zarr").exists()
    run = nbp.open_run(tmp_path / "b.zarr")
    assert run.name == "mine"
    assert run.series("0", "grad_norm").size == 30, "without a budget every step"
    recorded = {one.name for stream in run.streams.values() for one in stream.variables}
    assert {"dead_fraction", "momentum_norm"} & recorded


TWO = """
import torch
from torch import nn

class Generator(nn.Sequential): pass
class Critic(nn.Sequential): pass

models = Generator(nn.Linear(2, 2)), Critic(nn.Linear(2, 3))
features = nn.Sequential(*models[0].children())
for optimizer in [torch.optim.SGD(one.parameters(), lr=0.1) for one in models]:
    for model in models:
        model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("words", "first"), [([], "Generator"), (["--model", "Critic"], "Critic")])
def test_of_two_models_one_is_watched_and_the_other_is_named(
    tmp_path: Path, programs: Programs, words: list[str], first: str
) -> None:
    (tmp_path / "two.py").write_text(TWO)
    watched = under_warm_nbp(programs, tmp_path, *words, "two.py")
    assert (watched.code, watched.own[2]) == (0, [])
    (place,) = (tmp_path / "runs").iterdir()
    assert nbp.open_run(place).name == first
    named = [one for one in watched.told if one.startswith("only ")]
    assert named == (
        ["only Generator is watched; Critic is trained, too: nbp run --model Critic ..."]
        if first == "Generator"
        else []
    )


OWN = """
import torch
from torch import nn
import notebook_probe as nbp

model = nn.Linear(2, 2)
early = {early}
run = nbp.watch(model, store="own.zarr", name="own") if early else None
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
run = run or nbp.watch(model, optimizer, store="own.zarr", name="own")
for _ in range(3):
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("early", "words"), [(True, []), (False, []), (False, ["--store", "x.zarr"])]
)
def test_a_program_that_watches_its_model_itself_keeps_its_run(
    tmp_path: Path, programs: Programs, early: bool, words: list[str]
) -> None:
    (tmp_path / "own.py").write_text(OWN.format(early=early))
    watched = under_warm_nbp(programs, tmp_path, *words, "own.py")
    assert (watched.code, watched.out) == (0, "recording to own.zarr\n")
    assert watched.own[2] == []
    assert sorted(one.name for one in tmp_path.rglob("*.zarr")) == ["own.zarr"], "no other record"
    assert watched.told[-5:-3] == [
        "the program watches its model itself; its run is kept, and options are its own",
        "the record is own.zarr; see:",
    ]
    assert nbp.open_run(tmp_path / "own.zarr").series("", "backward_loss").size == 3


@pytest.mark.parametrize(
    ("program", "words", "line"),
    [
        ("print(1)", [], "nothing was watched: the program made no torch optimizer"),
        (
            "import torch\nvalue = torch.ones(2, requires_grad=True)\ntorch.optim.SGD([value])",
            [],
            "an optimizer was made whose parameters are in no module: not watched",
        ),
        (TWO, ["--model", "Critik"], "--model Critik: Generator is trained, and not watched"),
        (
            "import torch\nmodel = torch.nn.Linear(2, 2)\ntorch.optim.SGD(model.parameters())",
            [],
            "no step was trained, so there is no record",
        ),
    ],
)
def test_without_a_model_one_line_says_so(
    tmp_path: Path, programs: Programs, program: str, words: list[str], line: str
) -> None:
    (tmp_path / "program.py").write_text(program)
    watched = under_warm_nbp(programs, tmp_path, *words, "program.py")
    assert (watched.code, watched.own[2]) == (0, [])
    assert line in watched.told
    assert not any("the record" in one for one in watched.told)


def test_a_wrong_preset_stops_nothing(tmp_path: Path, script: str, programs: Programs) -> None:
    watched = under_warm_nbp(programs, tmp_path, "--probes", "defualt", script, "0")
    assert watched.own == plainly(tmp_path, script, "0").own
    assert "not watched: UnknownNameError" in watched.told[0]
    assert "default" in watched.told[0], "close names"


def test_a_hidden_startup_file_still_runs(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('their startup')")
    (tmp_path / "program.py").write_text(
        "import sys, sitecustomize as one\nprint(one.__file__, 'launch/startup' in str(sys.path))"
    )
    searched = f"{tmp_path}{os.pathsep}{ROOT}"
    watched = under_nbp(tmp_path, "program.py", PYTHONPATH=searched)
    assert watched.out.splitlines()[-2:] == [
        "their startup",
        f"{tmp_path / 'sitecustomize.py'} False",
    ]


@pytest.mark.parametrize(
    "words", [[], ["-m"], ["--budget", "much", "x.py"], ["--on-compiled", "x"]]
)
def test_bad_options_are_an_error_in_one_line(
    capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    try:
        code = main(["run", *words])
    except SystemExit as ended:
        code = int(str(ended.code))
    found = capsys.readouterr()
    assert (code, found.out, found.err.count("\n")) == (2, "", 1)
    assert found.err.startswith("notebook_probe: error: ")
