"""Guarded calls of a user's function on tensors that training uses, without effect on training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import torch
from torch import Tensor

from notebook_probe.errors import InterferenceError
from notebook_probe.uninterrupted import uninterrupted

__all__ = ["Guard"]


class Guard:
    """Caller of the function with the name ``name``.

    Examples
    --------
    >>> Guard("doubled")(lambda tensor: tensor.mul_(2), [torch.ones(2)], on_copies=True)
    Traceback (most recent call last):
    ...
    notebook_probe.errors.InterferenceError: doubled changed a tensor in place
    """

    __slots__ = ("_draws", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._draws = True  # random numbers; found out at the first call

    def __call__(
        self, function: Callable[..., Any], given: Sequence[Any], *, on_copies: bool
    ) -> Any:
        """Call it; on copies it cannot do harm before it is known that it would.

        Raises
        ------
        InterferenceError
            It wrote into a tensor, or left another mode.
        """
        if on_copies:
            given = [one.clone() if isinstance(one, Tensor) else one for one in given]
        # torch counts writes to a tensor in `_version`; comparing the counts is much cheaper than
        # values.
        versions, modes = _versions(given), _modes()
        # Reading the generator's state copies 5 kB; functions that draw nothing pay for it only
        # once.
        random = torch.get_rng_state() if self._draws else None
        # An interrupt between the call and the restored state would leave the training changed.
        with uninterrupted:
            try:
                return function(*given)
            finally:
                if random is not None:
                    self._draws = not torch.equal(random, torch.get_rng_state())
                    if self._draws:  # dropout must draw what it would have drawn
                        torch.set_rng_state(random)
                if modes != _modes():
                    torch.set_grad_enabled(modes[0])
                    torch.set_default_dtype(modes[1])
                    self._blame("left another default dtype, or gradient mode")
                if versions != _versions(given):
                    self._blame("changed a tensor in place")

    def _blame(self, what: str) -> NoReturn:
        raise InterferenceError(f"{self._name} {what}")


def _modes() -> tuple[bool, torch.dtype]:
    return torch.is_grad_enabled(), torch.get_default_dtype()


def _versions(given: Sequence[Any]) -> list[int]:
    """Return how often each tensor was written to, apart from those of inference mode."""
    return [one._version for one in given if isinstance(one, Tensor) and not one.is_inference()]
