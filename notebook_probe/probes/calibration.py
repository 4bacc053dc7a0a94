"""Measurement of the hidden cost of a hook's call, once in a process.

A module that has a hook is called on a longer path, autograd makes a Python object of every
gradient that a hook is to see, and what comes next finds the nearest caches full of what we did.
Two small networks are run with our own readings and without: what they take longer, less what was
counted of it, is the hidden cost of their calls. In the one nearly nothing happens between two
hooks, in the other about as much as in a small network in training.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from statistics import median
from typing import TypeAlias

import torch
from torch import Tensor, nn

from notebook_probe.model.map import ModelMap
from notebook_probe.probes.calls.taps import Taps
from notebook_probe.probes.due.building import readings
from notebook_probe.probes.due.readings import DueFrame, Readings
from notebook_probe.probes.inside.graph_readings import GraphReadings
from notebook_probe.probes.step.calling import CallSample, HookOverhead, is_known, keep
from notebook_probe.probes.step.phase import Phase
from notebook_probe.probes.step.probe import Probe
from notebook_probe.quantities import quantities
from notebook_probe.schedules import Every

__all__ = ["calibrate"]

Shape: TypeAlias = tuple[int, int]

READ = "output_mean", "output_std", "output_norm", "zero_fraction", "output_grad_norm"
"""Quantities that most hooks read."""
N_MODULES = 6
NEAR, FAR = (32, 64), (32, 256)
"""Rows and width in the two networks. Larger tensors torch shares out among threads, whose waking
would be all that is measured.
"""
N_TURNS = 12
USUAL_S = 1.5e-5
"""Usual seconds, where the cost cannot be measured."""
LEAST_S, MOST_S = 1e-7, 1e-3
"""Bounds of the measured seconds."""

_lock = threading.Lock()


def calibrate() -> None:
    """Measure it, unless that has been done; takes some milliseconds, and never raises.

    In a separate thread, in which no mode, no default device and no hooks on what autograd keeps
    are set.
    """
    with _lock:
        if not is_known():
            apart = threading.Thread(target=_calibrate)
            apart.start()
            apart.join()


def _calibrate() -> None:
    usual = HookOverhead(CallSample(0.0, USUAL_S), CallSample(0.0, USUAL_S))
    forward = backward = usual
    with suppress(Exception):  # global hooks of other code may do anything
        (near, near_back), (far, far_back) = _measured(_alike, NEAR), _measured(_unlike, FAR)
        forward, backward = HookOverhead(near, far), HookOverhead(near_back, far_back)
    keep(forward, backward)


def _alike(width: int) -> nn.Sequential:
    """Layers that take nearly no time, and whose data is still in the cache."""
    return nn.Sequential(*(nn.Tanh() for _ in range(N_MODULES)))


def _unlike(width: int) -> nn.Sequential:
    """Return layers of many kinds, none of which draws a random number."""
    norm = partial(nn.LayerNorm, width, device="cpu", dtype=torch.float32)
    other = nn.RMSNorm(width, device="cpu", dtype=torch.float32)
    return nn.Sequential(norm(), nn.GELU(), other, nn.Softmax(-1), norm(), nn.SiLU())


def _measured(
    network: Callable[[int], nn.Sequential], shape: Shape
) -> tuple[CallSample, CallSample]:
    """Return a call of a module, and a gradient, in such a network."""
    observed, plain = _Observed(network(shape[1])), network(shape[1])
    turns = [(observed.turn(shape), _turn(plain, shape, lambda: 0.0)) for _ in range(N_TURNS)]
    forward, backward = (
        _sample([(ours[part], bare[part]) for ours, bare in turns[1:]])  # one to make room
        for part in range(2)
    )
    return forward, backward


def _sample(pairs: list[tuple[float, float]]) -> CallSample:
    """Summarize turns with hooks and without, some of which other load on the machine lengthens."""
    after = median(bare for _, bare in pairs) / N_MODULES
    beside = median(ours - bare for ours, bare in pairs) / N_MODULES
    return CallSample(after, min(max(beside, LEAST_S), MOST_S))


class _Observed:
    """A model whose modules are read, with no step around it."""

    def __init__(self, model: nn.Module) -> None:
        self._model, model_map = model, ModelMap(model)
        places = [path for path in model_map.paths if path]
        probes = [Probe(place, quantities[name], Every(1)) for place in places for name in READ]
        self._readings: Readings = readings(model_map, tuple(probes), (), {})
        self._taps = Taps(self, GraphReadings(model))
        self._taps.set_places(model_map, places, ())
        self._taps.arm(self._readings, everywhere=False)

    def called(self, module: nn.Module) -> tuple[Phase, DueFrame]:
        """Return the taps' listener."""
        return "training", self._frame

    def turn(self, shape: Shape) -> tuple[float, float]:
        """Run `_turn`, less what the hooks have counted."""
        self._frame = frame = self._readings.frame(0)
        seconds = _turn(self._model, shape, lambda: frame.seconds)
        frame.close()
        return seconds


def _turn(model: nn.Module, shape: Shape, counted: Callable[[], float]) -> tuple[float, float]:
    """Measure the seconds of a forward and of a backward, less what is counted meanwhile."""
    given = torch.ones(shape, dtype=torch.float32, device="cpu", requires_grad=True)
    gradient = torch.ones_like(given)
    begun, before = time.perf_counter(), counted()
    output: Tensor = model(given)
    amid, then = time.perf_counter(), counted()
    output.backward(gradient)
    del output  # and with it the graph, and our hooks on it
    now = time.perf_counter()
    return amid - begun - (then - before), now - amid - (counted() - then)
