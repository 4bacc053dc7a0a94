"""What a call of a hook takes that no hook can see, measured once in a process.

A module that has a hook is called on a longer path, autograd makes a Python object of every
gradient that a hook is to see, and what comes next finds the nearest caches full of what we did.
A few modules are called with our own readings and without: what their calls take longer, less what
was counted of it, is what every such call takes beside.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from statistics import median

import torch
from torch import Tensor, nn

from notebook_probe.model.map import ModelMap
from notebook_probe.probes.calls.taps import Taps
from notebook_probe.probes.due.readings import DueFrame, Readings, readings
from notebook_probe.probes.step.calling import is_known, keep_seconds
from notebook_probe.probes.step.phase import Phase
from notebook_probe.probes.step.probe import Probe
from notebook_probe.quantities import quantities
from notebook_probe.schedules import Every

__all__ = ["calibrate"]

READ = "output_mean", "output_std", "output_norm", "zero_fraction", "output_grad_norm"
"""What most hooks read."""
N_MODULES, N_TURNS = 6, 12
SHAPE = 32, 64
USUAL_S = 1.5e-5
"""Where it cannot be measured."""
LEAST_S, MOST_S = 1e-7, 1e-3
"""Whatever was measured lies between."""

_lock = threading.Lock()


def calibrate() -> None:
    """Measure it, unless that has been done; takes some milliseconds, and never raises.

    In a thread of its own, in which nobody has set a mode, a default device or hooks on what
    autograd keeps.
    """
    with _lock:
        if not is_known():
            apart = threading.Thread(target=_calibrate)
            apart.start()
            apart.join()


def _calibrate() -> None:
    forward = backward = USUAL_S
    with suppress(Exception):  # somebody's hooks on all modules may do anything
        forward, backward = _measured()
    keep_seconds(forward, backward)


def _measured() -> tuple[float, float]:
    """Seconds per call of a module, and per gradient."""
    watched, plain = (nn.Sequential(*(nn.Tanh() for _ in range(N_MODULES))) for _ in range(2))
    observed = _Observed(watched)
    turns = [(observed.turn(), _turn(plain, lambda: 0.0)) for _ in range(N_TURNS)]
    beside = (
        [ours - bare for ours, bare in zip(with_us, without, strict=True)]
        for with_us, without in turns[1:]  # the first makes room for what it needs
    )
    forward, backward = zip(*beside, strict=True)
    return _per_call(forward), _per_call(backward)


def _per_call(seconds: tuple[float, ...]) -> float:
    """Of turns, of which other load on the machine lengthens some."""
    return min(max(median(seconds) / N_MODULES, LEAST_S), MOST_S)


class _Observed:
    """A model whose modules are read, with no step around it."""

    def __init__(self, model: nn.Module) -> None:
        self._model, model_map = model, ModelMap(model)
        places = [path for path in model_map.paths if path]
        probes = [Probe(place, quantities[name], Every(1)) for place in places for name in READ]
        self._readings: Readings = readings(model_map, tuple(probes), (), {})
        self._taps = Taps(self)
        self._taps.set_places(model_map, places, ())
        self._taps.arm(self._readings, everywhere=False)

    def called(self, module: nn.Module) -> tuple[Phase, DueFrame]:
        """The taps' listener."""
        return "training", self._frame

    def turn(self) -> tuple[float, float]:
        """As `_turn`, less what the hooks have counted."""
        self._frame = frame = self._readings.frame(0)
        seconds = _turn(self._model, lambda: frame.seconds)
        frame.close()
        return seconds


def _turn(model: nn.Module, counted: Callable[[], float]) -> tuple[float, float]:
    """Seconds of a forward and of a backward, less what is counted meanwhile."""
    given = torch.ones(SHAPE, dtype=torch.float32, device="cpu", requires_grad=True)
    gradient = torch.ones_like(given)
    begun, before = time.perf_counter(), counted()
    output: Tensor = model(given)
    amid, then = time.perf_counter(), counted()
    output.backward(gradient)
    del output  # and with it the graph, and our hooks on it
    now = time.perf_counter()
    return amid - begun - (then - before), now - amid - (counted() - then)
