"""Kinds of batches that a trainer has seen, on either side, and the callbacks for new ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from torch import nn

from notebook_probe.checks import whole_number
from notebook_probe.train.data.batch import Spec

__all__ = ["Executors", "Mode"]

Mode: TypeAlias = Literal["train", "eval"]


class Executors:
    """Pairs of mode and spec that were used.

    Parameters
    ----------
    most : int or None
        Maximum number of pairs: a spec that is new with every batch is a mistake.
    """

    def __init__(self, most: int | None) -> None:
        self._most = None if most is None else whole_number("max_executors", most, least=1)
        self._used: set[tuple[Mode, Spec]] = set()
        self._handlers: list[Callable[[nn.Module, Mode], None]] = []

    def tell(self, handler: Callable[[nn.Module, Mode], None]) -> None:
        """Call ``handler(model, mode)`` at the first use of each pair from now on."""
        self._handlers.append(handler)

    def use(self, model: nn.Module, mode: Mode, spec: Spec) -> None:
        """Note that a batch of this kind is about to be used.

        Raises
        ------
        RuntimeError
            There are too many kinds.
        """
        if (mode, spec) in self._used:
            return
        if self._most is not None and len(self._used) >= self._most:
            raise RuntimeError(
                f"{mode} of {spec!r}: more than max_executors={self._most} kinds of batches; a "
                f"spec tells kinds apart, not batches; None is no limit"
            )
        self._used.add((mode, spec))
        for handler in self._handlers:
            handler(model, mode)
