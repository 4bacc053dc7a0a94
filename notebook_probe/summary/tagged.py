"""Tagged values of a model: a number, a tensor, a histogram, images.

The calls may stay in a model's code: without a collector they do nothing.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any, Literal, Protocol, TypeAlias

import torch
from torch import nn

from notebook_probe.probes.calls.collect import running
from notebook_probe.probes.step.phase import is_traced

__all__ = ["Kind", "TagListener", "histogram", "image", "listen", "scalar", "tensor"]

Kind: TypeAlias = Literal["scalar", "tensor", "histogram", "image"]


class TagListener(Protocol):
    """A collector that follows a model.

    `TaggedItem`, which imports this module, is one.
    """

    def watches(self, module: nn.Module) -> bool:
        """Return whether a module is the followed model."""

    def tagged(self, kind: Kind, tag: str, value: Any) -> None:
        """Take in a value of a model's call."""


_listeners: tuple[weakref.ref[TagListener], ...] = ()
# The tuple is replaced as a whole, so that a running forward walks the old one.
# Changing the tuple reads and writes it; two threads at once would lose a listener.
_changing = threading.Lock()


def listen(listener: TagListener) -> None:
    """Notify ``listener``, while it exists, of tagged values from now on."""
    global _listeners
    with _changing:
        alive = tuple(ref for ref in _listeners if ref() not in (None, listener))
        _listeners = (*alive, weakref.ref(listener))


def scalar(tag: str, value: Any) -> None:
    """Record a number where data is due: ``tag`` in the record.

    Parameters
    ----------
    tag : str
    value : number or tensor of one element
        A tensor of more than one element is not recorded.

    Examples
    --------
    >>> class Gate(nn.Module):
    ...     def forward(self, x):
    ...         scalar("openness", x.sigmoid().mean())
    ...         return x.sigmoid() * x
    >>> Gate()(torch.zeros(2))
    tensor([0., 0.])
    """
    _tell("scalar", tag, value)


def tensor(tag: str, value: Any) -> None:
    """Record a tensor where tensors are due: ``<tag>_tensor`` in the record.

    Parameters
    ----------
    tag : str
    value : tensor of at most 2**20 real numbers
    """
    _tell("tensor", tag, value)


def histogram(tag: str, value: Any) -> None:
    """Record a histogram of a tensor where data is due: ``<tag>_histogram`` in the record.

    The first row has the edges of the bins, the second the counts, as in `param_histogram`.

    Parameters
    ----------
    tag : str
    value : tensor
    """
    _tell("histogram", tag, value)


def image(tag: str, value: Any) -> None:
    """Record images as one picture where data is due: ``<tag>_image`` in the record.

    Parameters
    ----------
    tag : str
    value : tensor (n, 1 or 3, height, width)
    """
    _tell("image", tag, value)


def _tell(kind: Kind, tag: str, value: Any) -> None:
    # There are no values, and the call must not become part of the graph.
    if torch.compiler.is_compiling() or is_traced():
        return
    if not isinstance(tag, str) or not tag.strip():
        raise TypeError(f"{kind}({tag!r}, ...): the tag is text that is not empty")
    # The usual case in a model that is used without a collector: it must cost next to nothing.
    if not _listeners:
        return
    modules = [*running()]
    # A strong reference while it is called: it may be dropped meanwhile.
    for listener in [one for ref in _listeners if (one := ref()) is not None]:
        if any(map(listener.watches, modules)):
            listener.tagged(kind, tag, value)
