"""Metrics by name, of a step or of an evaluation."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["Metrics"]

V = TypeVar("V")


class Metrics(dict[str, V]):
    """Metrics by name, which are attributes, too.

    Examples
    --------
    >>> metrics = Metrics(loss=0.123456, accuracy=0.5)
    >>> metrics.loss, metrics["accuracy"]
    (0.123456, 0.5)
    >>> metrics
    Metrics(loss=0.1235, accuracy=0.5)
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> V:
        try:
            return self[name]
        except KeyError:
            known = ", ".join(self) or "none"
            raise AttributeError(f"no metric {name!r}; there are: {known}") from None

    def __repr__(self) -> str:
        """Return the names and numbers; one on an accelerator is waited for."""
        shown = (f"{name}={float(value):.4g}" for name, value in self.items())  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(shown)})"
