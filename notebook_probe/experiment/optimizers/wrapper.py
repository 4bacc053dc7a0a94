"""An optimizer around others, which looks to everybody like an optimizer of torch."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from notebook_probe.errors import NonFiniteGradientError
from notebook_probe.experiment.optimizers.states import joined, split

__all__ = ["Wrapper"]

Closure = Callable[[], Any]

HOOKS = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)
"""Attributes in which torch's own methods store registered hooks."""


class Wrapper(Optimizer):
    """One optimizer, or several that step one after the other as one.

    Groups, states and options are theirs: schedulers, scalers and checkpoints find what they look
    for. It does nothing to gradients by itself; `prepare` is where that is done. torch announces
    the steps of those inside, and none of this one, so that a step counts once.

    Attributes
    ----------
    optimizers : tuple of Optimizer
    n_skipped : int
        Updates that were left out.
    """

    def __init__(self, optimizers: tuple[Optimizer, ...]) -> None:
        # Not torch's own, which would make groups, and have the step announced a second time.
        self.optimizers = optimizers
        self.n_skipped = 0
        self._set_hooks()

    # ---------------------------------------------------------------- what torch's have

    @property
    def optimizer(self) -> Optimizer:
        """The one inside; of several the first."""
        return self.optimizers[0]

    @property
    def param_groups(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """Groups of the optimizers inside, uncopied."""
        if len(self.optimizers) == 1:
            return self.optimizer.param_groups
        return [group for one in self.optimizers for group in one.param_groups]

    @property
    def state(self) -> defaultdict[Tensor, Any]:  # type: ignore[override]
        """State of the optimizer inside, uncopied; of several, merged."""
        if len(self.optimizers) == 1:
            return self.optimizer.state
        return defaultdict(
            dict, {key: of for one in self.optimizers for key, of in one.state.items()}
        )

    @property
    def defaults(self) -> dict[str, Any]:  # type: ignore[override]
        """Defaults of the optimizer inside; of several, the common ones with the first's values."""
        rest = self.optimizers[1:]
        first = self.optimizer.defaults
        return first if not rest else {
            key: value for key, value in first.items() if all(key in one.defaults for one in rest)
        }  # fmt: skip

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group to the optimizer inside, of several to the last."""
        self.optimizers[-1].add_param_group(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients."""
        for one in self.optimizers:
            one.zero_grad(set_to_none)

    def state_dict(self) -> dict[str, Any]:
        """Return the state in torch's form, whatever wraps the optimizer; of several, joined."""
        for before in self._optimizer_state_dict_pre_hooks.values():
            before(self)
        state = joined([one.state_dict() for one in self.optimizers])
        for after in self._optimizer_state_dict_post_hooks.values():
            state = after(self, state) or state
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from `state_dict`, or from the state of the optimizer inside."""
        state = dict(state_dict)
        for before in self._optimizer_load_state_dict_pre_hooks.values():
            state = before(self, state) or state
        parts = split(state, [len(one.param_groups) for one in self.optimizers])
        for one, part in zip(self.optimizers, parts, strict=True):
            one.load_state_dict(part)
        for after in self._optimizer_load_state_dict_post_hooks.values():
            after(self)

    def __repr__(self) -> str:
        inside = ", ".join(map(repr, self.optimizers))
        return f"{type(self).__name__}({inside})"

    def __getstate__(self) -> dict[str, Any]:
        """Return torch's state, without hooks and a scheduler's replacement of `step`."""
        # torch's schedulers replace `step` by an attribute of the instance that refers to
        # themselves.
        return {name: value for name, value in vars(self).items() if name not in (*HOOKS, "step")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._set_hooks()

    def _set_hooks(self) -> None:
        for name in HOOKS:
            setattr(self, name, OrderedDict())

    # ---------------------------------------------------------------- a step

    def step(self, closure: Closure | None = None) -> Any:
        """Update once, unless the gradients cause a skip.

        Parameters
        ----------
        closure : callable, optional
            Computes the loss and its gradients, which are made ready each time. With several
            optimizers it is called once.
        """
        before = self.n_skipped
        self.step_begins()
        loss = None
        if closure is None:
            self._updated()
        else:
            loss = self._with_closure(closure)
        # A skipped update is no step, so a counter in a post hook must not see it.
        if self.n_skipped == before:
            self.step_ended()
        return loss

    def prepare(self) -> bool:
        """Prepare the gradients, also of optimizers inside; return False to skip the update."""
        return all(one.prepare() for one in self.inside())

    def apply(self, closure: Closure | None = None) -> Any:
        """Update the parameters by the present gradients."""
        loss = None
        for one in self.optimizers:
            # Not its step(), as its hooks were called and its gradients prepared from the outermost
            # one.
            if isinstance(one, Wrapper):
                loss = one.apply(closure)
            else:
                loss = one.step() if closure is None else one.step(closure)
        return loss

    def inside(self) -> Iterator[Wrapper]:
        """Return the optimizers inside that are wrappers themselves."""
        return (one for one in self.optimizers if isinstance(one, Wrapper))

    def parameters(self) -> Iterator[Tensor]:
        """All that are trained."""
        return (value for group in self.param_groups for value in group["params"])

    def step_begins(self) -> None:
        """Call the registered hooks for the start of a step, also of optimizers inside."""
        for hook in self._optimizer_step_pre_hooks.values():
            if hook(self, (self,), {}) is not None:
                raise TypeError(
                    f"a hook of {type(self).__name__} changes the arguments of its step; register "
                    f"it on .optimizer"
                )
        # From outside to inside here, and from inside to outside at the end, as nested calls would.
        for one in self.inside():
            one.step_begins()

    def step_ended(self) -> None:
        """Call the registered hooks for the end of a step, also of optimizers inside."""
        for one in self.inside():
            one.step_ended()
        for hook in self._optimizer_step_post_hooks.values():
            hook(self, (self,), {})

    def _updated(self) -> None:
        if self.prepare():
            self.apply()
        else:
            self.n_skipped += 1

    def _with_closure(self, closure: Closure) -> Any:
        # One optimizer may call the closure as often as it likes (LBFGS); for several it runs once,
        # as the second would find the weights already changed by the first.
        if len([*self._leaves()]) > 1:
            # As torch's optimizers do for a closure: their step() runs under no_grad.
            with torch.enable_grad():
                loss = closure()
            self._updated()
            return loss
        return _Runs(self, closure).update()

    def _leaves(self) -> Iterable[Optimizer]:
        for one in self.optimizers:
            yield from one._leaves() if isinstance(one, Wrapper) else [one]


# BaseException, so that no `except Exception` in an optimizer or a closure swallows it.
class _LeftOut(BaseException):
    """Ends the optimizer's step before it has changed anything."""


class _Runs:
    """The runs of a closure in one step."""

    def __init__(self, around: Wrapper, closure: Closure) -> None:
        self._around, self._closure = around, closure
        self._n_done = 0
        self._loss: Any = None

    def update(self) -> Any:
        """Step with it."""
        try:
            return self._around.apply(self._run)
        except _LeftOut:
            self._around.n_skipped += 1
            return self._loss

    def _run(self) -> Any:
        loss = self._closure()
        if not self._around.prepare():
            self._leave_out(loss)
        self._n_done += 1
        return loss

    def _leave_out(self, loss: Any) -> None:
        if self._n_done:
            raise NonFiniteGradientError(
                f"run {self._n_done + 1} of a closure has left gradients that are not finite, and "
                f"the optimizer has changed weights since the first: it cannot be left out"
            )
        self._loss = loss
        raise _LeftOut
