"""What somebody does first with the plain installation; a script, run where nothing else is."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import nn

import notebook_probe as nbp


def main() -> None:
    """Train, record, read, report."""
    assert not any(map(find_spec, ("anywidget", "IPython", "matplotlib", "sklearn", "pytest")))

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    with nbp.watch(model, optimizer, store="run.zarr", probes=["default", "alerts", "step"]) as run:
        run.explore()
        for _ in range(30):
            x = torch.randn(32, 8)
            loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
            optimizer.zero_grad()
            loss.backward()
            norm = float(torch.linalg.norm(next(model.parameters()).detach()))
            optimizer.step()
            run.log(loss=loss)
        status = run.status()
    assert status.errors == (), status.errors
    assert status.dropped_rows == 0

    opened = nbp.open_run("run.zarr")
    assert opened.data.sizes["step"] == 30
    recorded = float(opened.series("0", "weight_norm")[-1])
    assert abs(recorded - norm) < 1e-5 * norm, (recorded, norm)
    assert 'id="package"' in opened.to_html("run.html").read_text("utf-8")

    command = [sys.executable, "-I", "-m", "notebook_probe", "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said == f"notebook_probe {nbp.__version__}\n"
    script = Path(sys.executable).with_name("nbp")
    for words, begin in (
        (["explain", "run.zarr", "--json"], '{"run":'),
        (["skill"], "---\nname: notebook-probe\n"),
    ):
        said = subprocess.run([script, *words], capture_output=True, text=True, check=True).stdout
        assert said.startswith(begin), said
    print("torch", torch.__version__, "python", sys.version.split()[0])


if __name__ == "__main__":
    main()
