"""Everything that is measured of the models here; a new feature is added to these lists."""

from __future__ import annotations

from contextlib import suppress

from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.errors import NotApplicableError
from notebook_probe.quantities import quantities

__all__ = ["OF_ONE_TENSOR", "attach_everything"]


def size(tensor: Tensor) -> float:
    return float(tensor.double().norm())


@nbp.quantity(name="own_input", combine="rss")
def own_input(input: Tensor) -> float:
    """Size of the first input."""
    return size(input)


@nbp.quantity(name="own_output", combine="rss")
def own_output(output: Tensor) -> float:
    """Size of the first output."""
    return size(output)


@nbp.quantity(name="own_gain")
def own_gain(input: Tensor, output: Tensor) -> float:
    """Size of the first output over that of the first input."""
    return size(output) / (size(input) + 1e-12)


@nbp.quantity(name="own_output_grad", combine="rss")
def own_output_grad(grad_output: Tensor) -> float:
    """Size of an output's gradient."""
    return size(grad_output)


@nbp.quantity(name="own_input_grad", combine="rss")
def own_input_grad(grad_input: Tensor) -> float:
    """Size of the gradient that the module sends to its inputs."""
    return size(grad_input)


@nbp.quantity(name="own_mode")
def own_mode(module: nn.Module, output: Tensor) -> float:
    """One while the module trains."""
    return float(module.training)


@nbp.quantity(name="own_weight")
def own_weight(weight: Tensor) -> float:
    """Size of a parameter."""
    return size(weight)


@nbp.quantity(name="own_grad")
def own_grad(grad: Tensor) -> float:
    """Size of a gradient as applied."""
    return size(grad)


@nbp.quantity(name="own_raw_grad")
def own_raw_grad(grad_raw: Tensor) -> float:
    """Size of a gradient as accumulated."""
    return size(grad_raw)


@nbp.quantity(name="own_update")
def own_update(update: Tensor) -> float:
    """Size of an update."""
    return size(update)


@nbp.quantity(name="own_momentum")
def own_momentum(state_exp_avg: Tensor) -> float:
    """Size of Adam's moving average."""
    return size(state_exp_avg)


BUILT_IN = [
    one for one in quantities.values() if one.function.__module__.startswith("notebook_probe.")
]

RAW = {"grad_raw", "grad_micro"}

OF_MODULES = [
    *BUILT_IN,
    own_input,
    own_output,
    own_gain,
    own_output_grad,
    own_input_grad,
    own_mode,
]
OF_PARAMETERS: list[nbp.Quantity | str] = [
    "weight_norm",
    "grad_norm",
    "update_norm",
    "update_ratio",
    own_weight,
    own_grad,
    own_raw_grad,
    own_update,
    own_momentum,
]

OF_ONE_TENSOR = {
    "own_input": "input_norm",
    "own_output": "output_norm",
    "own_mode": "output_norm",
    "own_output_grad": "output_grad_norm",
    "own_input_grad": "input_grad_norm",
    "own_weight": "weight_norm",
    "own_grad": "grad_norm",
    "own_raw_grad": "grad_norm",
    "own_update": "update_norm",
    "own_momentum": "grad_norm",
}
"""A function of a tensor -> the quantity that has a value wherever it must have one."""


def everywhere(path: str, module: nn.Module) -> bool:
    """The root too, which no glob means."""
    return True


def attach_everything(run: nbp.Run, model: nn.Module) -> None:
    """Measure every feature of every module and of every parameter, beside the default probes."""
    # While raw gradients are read, each change works out at once all that the next step will read.
    for quantity in sorted(OF_MODULES, key=lambda one: not RAW.isdisjoint(one.needs)):
        with suppress(NotApplicableError):  # no module here has what it needs
            run.attach(everywhere, quantity)
    run.attach([name for name, _ in model.named_parameters()], OF_PARAMETERS)
