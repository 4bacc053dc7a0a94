"""Programs that know nothing of this package, run plainly and under ``nbp run``."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import notebook_probe
from tests.run.programs import Programs

__all__ = ["OURS", "TRAINING", "Outcome", "plainly", "under_nbp", "under_warm_nbp"]

OURS = "notebook_probe: "
ROOT = Path(notebook_probe.__file__).parents[1]

COMMAND = """
import sys
from notebook_probe.command_line import main
sys.exit(main(["run", *sys.argv[1:]]))
"""

TRAINING = """
import hashlib, os, sys
loaded_before = [one for one in ("numpy", "torch", "notebook_probe", "json") if one in sys.modules]
print(loaded_before, sys.argv, __name__, __file__, __spec__ and __spec__.name, sys.path)
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(4, 16), nn.Dropout(0.1), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(30):
    optimizer.zero_grad()
    loss = model(torch.randn(8, 4)).square().mean()
    loss.backward()
    optimizer.step()
state = b"".join(value.detach().numpy().tobytes() for value in model.state_dict().values())
print(hashlib.sha256(state + torch.get_rng_state().numpy().tobytes()).hexdigest(), loss.item())
if sys.argv[1] == "raise":
    raise ValueError("as it is")
if sys.argv[1] == "kill":
    import signal
    os.kill(os.getpid(), getattr(signal, sys.argv[2]))
sys.exit(int(sys.argv[1]))
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a process did."""

    code: int
    out: str
    err: str

    @property
    def told(self) -> list[str]:
        """Lines on stderr that are of this package."""
        lines = self.err.splitlines()
        return [one.removeprefix(OURS) for one in lines if one.startswith(OURS)]

    @property
    def own(self) -> tuple[int, str, list[str]]:
        """Exit code, stdout and stderr of the program itself."""
        lines = [one for one in self.err.splitlines() if not one.startswith(OURS)]
        return self.code, self.out, [one for one in lines if "<frozen runpy>" not in one]


def plainly(folder: Path, *words: str) -> Outcome:
    """Run Python with some words, in a folder."""
    return _outcome(folder, words)


def under_nbp(folder: Path, *words: str, **variables: str) -> Outcome:
    """Run ``nbp run`` with some words, in a folder."""
    return _outcome(folder, ("-m", "notebook_probe", "run", *words), variables)


def under_warm_nbp(programs: Programs, folder: Path, *words: str, **variables: str) -> Outcome:
    """Run ``nbp run`` in a process that has imported the package.

    It is replaced by Python, which has imported nothing, as ever.
    """
    out = folder / "stdout of the program"
    done = programs.run(
        COMMAND, *words, folder=folder, out=out, environment=_environment(variables)
    )
    text = out.read_text()
    out.unlink()
    return Outcome(done.code, text, done.stderr)


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, **variables}


def _outcome(folder: Path, words: Sequence[str], variables: Mapping[str, str] = {}) -> Outcome:
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=_environment(variables),
        capture_output=True,
        text=True,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)
