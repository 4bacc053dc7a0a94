"""An optimizer that clips gradients, and trains some parameters only."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from notebook_probe.experiment.optimizers.clipping import Clip, ClippingMethod, global_norm
from notebook_probe.experiment.optimizers.making import OptimizerClass, make
from notebook_probe.experiment.optimizers.names import Names
from notebook_probe.experiment.optimizers.wrapper import Wrapper
from notebook_probe.train.trainer.clipping import OnNonfinite

__all__ = ["ClipOptimizer"]


class ClipOptimizer(Wrapper):
    """Clips gradients before every update of another optimizer.

    ``"value"`` clips each element of a gradient to ``[-v, v]``. ``"norm"`` scales all gradients by
    ``v / max(global norm, v)``, where the global norm is ``sqrt(Σ g²)`` over all of them. A
    parameter without a gradient is left out.

    Everything else is the other optimizer's: groups, state, ``state_dict``, closures. Schedulers,
    gradient scalers and checkpoints take it for an optimizer of torch, and a step counts once.

    Parameters
    ----------
    optimizer_class : class, list of classes, or Optimizer
        Classes of `torch.optim`, or similar ones. A list makes several optimizers that step
        together; each argument, and ``names``, that is a list has one entry per optimizer.
    *args, **kwargs
        Arguments of the class. The first are the parameters: as torch takes them, or the module.
    clip : bool
        If True, clip the gradients.
    trainable_names : str or list of str, optional
        Train only parameters whose names begin with one of these.
    frozen_names : str or list of str, optional
        Train all but these.
    trainable_scope : str or list of str, optional
        Train only parameters whose names contain one of these.
    clipping_method : "value" or "norm"
    clipping_value : float
        v, positive.
    print_global_norm : bool
        Print the global norm before it is clipped, at every update.
    on_nonfinite : "raise" or "skip"
        Action if the global norm is NaN or infinite: raise, or skip the update and count it.
        Elements are clipped one by one, regardless of the others.

    Attributes
    ----------
    optimizer : Optimizer
        The one inside.
    n_skipped : int
        Updates that were left out.

    Raises
    ------
    ValueError
        Another method, a name that fits no parameter, or lists that are not of one length.

    Examples
    --------
    >>> model = torch.nn.Linear(1, 1, bias=False)
    >>> _ = torch.nn.init.zeros_(model.weight)
    >>> optimizer = ClipOptimizer(torch.optim.SGD, model, lr=0.5, clipping_value=0.1)
    >>> (-100 * model(torch.ones(1, 1))).sum().backward()
    >>> optimizer.step()
    >>> round(model.weight.item(), 4)
    0.05
    """

    def __init__(
        self,
        optimizer_class: OptimizerClass | Optimizer | list[OptimizerClass],
        *args: Any,
        clip: bool = True,
        trainable_names: Names = None,
        frozen_names: Names = None,
        trainable_scope: Names = None,
        clipping_method: ClippingMethod = "value",
        clipping_value: float = 1.0,
        print_global_norm: bool = False,
        on_nonfinite: OnNonfinite = "raise",
        **kwargs: Any,
    ) -> None:
        for name, value in (("clip", clip), ("print_global_norm", print_global_norm)):
            if not isinstance(value, bool):
                raise TypeError(f"{name}={value!r}; allowed: True, False")
        # tfutils has `clip` as its second argument; here such a call would pass a bool as
        # parameters.
        if args and (args[0] is None or isinstance(args[0], bool)):
            raise TypeError(
                f"ClipOptimizer(optimizer_class, {args[0]!r}, ...): parameters come second; clip "
                f"and names are keywords, as in ClipOptimizer(SGD, params, clip=True)"
            )
        self._clip = Clip(clipping_method, clipping_value, on_nonfinite)
        self._clips, self._prints = clip, print_global_norm
        names = {
            "trainable_names": trainable_names,
            "trainable_scope": trainable_scope,
            "frozen_names": frozen_names,
        }
        super().__init__(make(optimizer_class, args, kwargs, names))

    def __repr__(self) -> str:
        inside = ", ".join(map(repr, self.optimizers))
        return f"ClipOptimizer({self._clip if self._clips else 'clip=False'}: {inside})"

    @property
    def clips(self) -> bool:
        """True if it clips."""
        return self._clips

    def prepare(self) -> bool:
        """Clip; False where the update is left out."""
        return super().prepare() and self.clip_gradients()

    @torch.no_grad()
    def clip_gradients(self) -> bool:
        """Clip the gradients in ``.grad``; return False if such an update is to be skipped."""
        gradients = [*map(_elements, self._with_gradients())]
        if self._prints:
            print(f"global norm of the gradients: {global_norm(gradients):g}")
        return self._clip(gradients) if self._clips else True

    def _with_gradients(self) -> list[Tensor]:
        return [value for value in self.parameters() if value.grad is not None]


def _elements(parameter: Tensor) -> Tensor:
    """Return the gradient, the values of a sparse one, the real view of a complex one."""
    gradient = parameter.grad
    assert gradient is not None
    # A sparse gradient may hold an index several times: only the sum of its values may be clipped.
    # `_values()` shares memory with it, so that clipping in place changes the gradient itself.
    if gradient.is_sparse:
        gradient = parameter.grad = gradient.coalesce()
        gradient = gradient._values()
    # torch.clamp is not defined for complex numbers; the view shares memory with the gradient.
    return torch.view_as_real(gradient) if gradient.is_complex() else gradient
