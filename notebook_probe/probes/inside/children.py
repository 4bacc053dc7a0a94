"""A mark by which Dynamo tells one model from another of its class.

Dynamo guards on the kind of dict in which a module has its children, and not on its hooks: without
a mark the graph of an unwatched model would be used for a watched one, and that of earlier steps
for later ones. An ordered dict behaves as the plain one.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import Any

from torch import nn

from notebook_probe.uninterrupted import whole

__all__ = ["MarkedChildren"]


class MarkedChildren:
    """The children of a model's modules in ordered dicts, until they are given back."""

    def __init__(self) -> None:
        self._marked: list[
            tuple[weakref.ref[nn.Module], OrderedDict[str, Any], dict[str, Any]]
        ] = []

    def __bool__(self) -> bool:
        return bool(self._marked)

    @whole
    def mark(self, model: nn.Module) -> None:
        """Put the children of every module into an ordered dict."""
        for module in model.modules():
            plain = module.__dict__.get("_modules")
            if type(plain) is dict and plain:
                marked = OrderedDict(plain)
                # A copy, and what is pickled, has a plain one.
                marked.__reduce_ex__ = _Unmarked(marked)  # type: ignore[method-assign]
                module.__dict__["_modules"] = marked
                self._marked.append((weakref.ref(module), marked, plain))

    @whole
    def remove(self) -> None:
        """Give every module its own dict back, with the children that it has now."""
        for reference, marked, plain in self._marked:
            module = reference()
            if module is not None and module.__dict__.get("_modules") is marked:
                plain.clear()
                plain.update(marked)
                module.__dict__["_modules"] = plain
        self._marked = []


class _Unmarked:
    """The ``__reduce_ex__`` of a marked dict."""

    __slots__ = ("_marked",)

    def __init__(self, marked: OrderedDict[str, Any]) -> None:
        self._marked = weakref.ref(marked)

    def __call__(self, protocol: Any) -> Any:
        return dict, ([*(self._marked() or {}).items()],)
