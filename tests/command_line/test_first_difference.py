"""``nbp first-difference``: two functions that make models, from a terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from jsonschema import Draft202012Validator

from notebook_probe.command_line.schemas import schemas
from tests.command_line.conftest import Said

MODEL = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)
    def forward(self, x):
        return self.fc(x) / SCALE

def make():
    print("made")
    return Net(), torch.ones(3, 4), torch.zeros(3, dtype=torch.long), nn.functional.cross_entropy

def alone():
    return Net()

def fails():
    raise ValueError("as it is")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, scale in (("old", "2.0"), ("new", "3.0"), ("same", "2.0")):
        (tmp_path / f"{name}.py").write_text(MODEL.replace("SCALE", scale))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path


def test_the_operation_and_the_lines_of_both_are_named(said: Said, folder: Path) -> None:
    before = torch.get_rng_state()
    code, out, err = said("first-difference", "old.py:make", "new.py:alone", "--json")
    assert (code, err) == (0, "made\n")
    found = json.loads(out)
    Draft202012Validator(schemas()["first-difference"]).validate(found)
    assert (found["kind"], found["direction"]) == ("arguments", "forward")
    line = MODEL.splitlines().index("        return self.fc(x) / SCALE") + 1
    for side, scale in (("this", "2.0"), ("other", "3.0")):
        assert found[side]["arguments"] == f"~, {scale}"
        assert (found[side]["line"], found[side]["code"]) == (line, f"return self.fc(x) / {scale}")
    assert Path(found["this"]["file"]).name == "old.py"
    assert torch.equal(torch.get_rng_state(), before)


def test_equal_code_has_no_difference(said: Said, folder: Path) -> None:
    code, out, _ = said("first-difference", "old.py:make", "same.py:make")
    assert code == 0
    assert out.startswith("No difference in ")


@pytest.mark.parametrize(
    ("this", "other", "why"),
    [
        (
            "old.py:alone",
            "new.py:make",
            "old.py:alone returned a model alone; return model, inputs",
        ),
        ("old.py:mak", "new.py:make", "no function 'mak' in old.py; close: 'make'"),
        ("old.py:fails", "new.py:make", "old.py:fails: ValueError: as it is (line 20 of "),
        ("gone.py:make", "new.py:make", "no file gone.py"),
        ("old.py", "new.py:make", "'old.py' is no MODULE:FUNCTION or FILE.py:FUNCTION"),
        ("sys:getrefcount", "new.py:make", "sys:getrefcount: TypeError"),
        ("sys:getprofile", "new.py:make", "returned NoneType; model, inputs, targets, loss"),
    ],
)
def test_what_cannot_be_compared_is_an_error_in_one_line(
    said: Said, folder: Path, this: str, other: str, why: str
) -> None:
    code, out, err = said("first-difference", this, other)
    assert (code, out, err.count("notebook_probe: error: ")) == (2, "", 1)
    assert why in err


@pytest.mark.slow
def test_another_process_compares_modules_by_name(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "notebook_probe", "first-difference", "old:make", "new:make"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ},
    )
    title, this, other = done.stdout.splitlines()
    assert title == "The forward first differs at the model: other arguments"
    assert this.endswith("at old.py:10: return self.fc(x) / 2.0")
    assert other.endswith("at new.py:10: return self.fc(x) / 3.0")
