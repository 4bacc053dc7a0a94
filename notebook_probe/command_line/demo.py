"""``demo``: a small network trains in the terminal, and its panel opens in the browser."""

from __future__ import annotations

import os
import sys
import time
import webbrowser
from argparse import ArgumentParser, ArgumentTypeError, BooleanOptionalAction, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from notebook_probe.command_line.printed import plain
from notebook_probe.errors import ProbeError

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from notebook_probe.command_line.tiny_gpt import CharacterText, TinyGPT
    from notebook_probe.run.run import Run

__all__ = ["add"]

STEPS, BATCH, LR = 240, 16, 5e-3
TOO_HIGH = 20
"""Factor of the learning rate in the last eighth: something for the alerts to see."""
TOLD = 20
"""Lines of progress."""
WHAT = """\
A small GPT learns to write like Python's own documentation, letter by letter.
Two lines watch it: run = nbp.watch(model, optimizer), and at the end
run.to_html("report.html").
"""


def add(parser: ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--folder",
        default="notebook-probe-demo",
        help="new folder for the record and the report, by default %(default)s",
    )
    parser.add_argument("--steps", type=_count, default=STEPS, help="training steps: %(default)s")
    parser.add_argument("--device", help="such as cpu or cuda; by default CUDA if available")
    parser.add_argument(
        "--open", action=BooleanOptionalAction, default=True, help="open the report in the browser"
    )
    parser.set_defaults(do=do)


def do(asked: Namespace) -> None:
    """Train, write the report, and open it; after an interrupt, from the data so far."""
    folder = _new_folder(asked.folder)
    print(WHAT, flush=True)  # torch takes seconds to load
    import torch

    from notebook_probe.command_line.tiny_gpt import CharacterText, TinyGPT
    from notebook_probe.run.watch import watch

    torch.set_num_threads(1)  # small tensors gain nothing from more
    torch.manual_seed(0)
    text = CharacterText()
    device = asked.device or ("cuda" if torch.cuda.is_available() else "cpu")
    model = TinyGPT(len(text.characters)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR)
    interrupted = None
    with watch(model, optimizer, store=folder / "run.zarr", name="demo") as run:
        try:
            _train(run, model, optimizer, text, asked.steps, device)
        except KeyboardInterrupt as error:
            print("\ninterrupted: what was recorded stays")
            interrupted = error
    report = run.to_html(folder / "report.html").resolve()
    print(f"\nrecord  {plain(str(run.location))}\nreport  {plain(str(report))}")
    if interrupted is not None:
        raise interrupted
    if not (asked.open and _opened(report)):
        print("Any browser opens the report: it is one file, which needs nothing else.")


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise ArgumentTypeError(f"{text!r} is no number of steps")
    return int(text)


def _new_folder(name: str) -> Path:
    """Return a new, empty folder: no file is overwritten."""
    folder = Path(name).expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise ProbeError(f"{name} is not empty; --folder names another place")
    return folder


def _train(
    run: Run,
    model: TinyGPT,
    optimizer: Optimizer,
    text: CharacterText,
    steps: int,
    device: str,
) -> None:
    """Train with an ordinary loop that prints a line now and then."""
    begun, n_told = time.monotonic(), 0
    for step in range(steps):
        if step == steps * 7 // 8:
            print(f"   now the learning rate goes up {TOO_HIGH} times: does anyone notice?")
            optimizer.param_groups[0]["lr"] *= TOO_HIGH
        numbers, following = text.batch(BATCH)
        loss = model.loss(numbers.to(device), following.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.log(lr=optimizer.param_groups[0]["lr"])
        if step % max(1, steps // TOLD) == 0 or step == steps - 1:
            seconds = time.monotonic() - begun
            print(
                f"step {step:4} of {steps}   loss {loss.item():.2f}   {seconds:4.1f} s", flush=True
            )
            n_told = _tell_alerts(run, n_told)


def _tell_alerts(run: Run, n_told: int) -> int:
    """Print new alerts; return the number of all."""
    alerts = [*run.alerts]
    for alert in alerts[n_told:]:
        print(f"   alert: {plain(str(alert))}", flush=True)
    return len(alerts)


def _opened(report: Path) -> bool:
    """Return whether a browser was opened; none that would take over the terminal is tried."""
    places = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
    if sys.platform not in ("darwin", "win32") and not any(map(os.environ.get, places)):
        return False
    try:
        return webbrowser.open(report.as_uri())
    except webbrowser.Error:
        return False
