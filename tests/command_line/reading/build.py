"""A small record whose every value is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from notebook_probe.alerts import Alert
from notebook_probe.alerts.alert import ALERT, REMARK
from notebook_probe.record import RecordWriter
from notebook_probe.record.format.missing import as_measured
from notebook_probe.record.format.source import ModuleRow, Variable

N_STEPS = 400
PEAK, LOST = 157, range(300, 350)
MODULES = (
    ModuleRow("", "Net", 120, 0, -1),
    ModuleRow("body", "Sequential", 100, 0, 0),
    ModuleRow("body.0", "Linear", 100, 100, 1),
    ModuleRow("head", "Linear", 20, 20, 0),
)
SPIKE = Alert(
    "loss_spike", PEAK, "the model: the loss jumped", ("(root)",), ("loss",), began=(PEAK - 1, PEAK)
)
GONE = Alert(
    "nonfinite_output",
    300,
    "head: 100.00% of the outputs are NaN",
    ("head",),
    ("grad_norm",),
    severity="severe",
    flow="forward",
    began=(299, 300),
)
QUIET = Alert("unused", 20, "body: it may be intended", ("body",), severity="remark")


def norms() -> npt.NDArray[np.float32]:
    """Gradient norms (step, module) of body.0 and head: a peak, and a stretch without numbers."""
    values = np.random.default_rng(0).normal(1, 0.1, (N_STEPS, 2))
    values[PEAK, 0] = 1e6
    values[LOST, 1] = np.nan
    values[LOST[3], 1] = np.inf
    return values.astype(np.float32)


def losses() -> npt.NDArray[np.float32]:
    """Losses (step,)."""
    return np.linspace(2.5, 0.1, N_STEPS, dtype=np.float32)


def write(writer: RecordWriter, first: int = 0, stop: int = N_STEPS, scale: float = 1.0) -> None:
    """Record some of the steps."""
    every = writer.stream("every_1")
    every.extend(["body.0", "head"], [Variable("grad_norm", "1", "Size of the gradient")])
    logged = writer.stream("loop")
    logged.extend([""], [Variable("loss", "nat", "logged by the training loop")])
    known, loss = norms(), losses()
    for step in range(first, stop):
        every.record(step, 1000 * step, as_measured(known[step] * [1, scale])[None])
        logged.record(step, 1000 * step, loss[step].reshape(1, 1))


def build(
    folder: Path,
    title: str = "known",
    alerts: tuple[Alert, ...] = (SPIKE, GONE),
    scale: float = 1.0,
) -> str:
    """Write the record of a watched run; ``scale`` is a factor of the norms of head."""
    attrs = {"model_class": "Net"}
    with RecordWriter(folder, title=title, modules=MODULES, attrs=attrs) as writer:
        write(writer, scale=scale)
        rare = writer.stream("every_100")
        rare.extend(["body.0"], [Variable("weight_norm", "1", "Size of the weight")])
        for step in range(0, N_STEPS, 100):
            rare.record(step, 1000 * step, np.full((1, 1), step + 0.5, np.float32))
        for alert in alerts:
            writer.event(alert.step, ALERT, alert.text, alert.detail)
        writer.event(QUIET.step, REMARK, QUIET.text, QUIET.detail)
    return str(folder)
