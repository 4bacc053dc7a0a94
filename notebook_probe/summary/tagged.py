"""Values that a model gives of itself under a tag: a number, a tensor, a histogram, images.

They may stay in a model's code: where no collector follows the model they do nothing.
"""

from __future__ import annotations

import weakref
from typing import Any, Literal, Protocol, TypeAlias

import torch
from torch import nn

from notebook_probe.probes.calls.collect import running
from notebook_probe.probes.step.phase import is_traced

__all__ = ["Kind", "TagListener", "histogram", "image", "listen", "scalar", "tensor"]

Kind: TypeAlias = Literal["scalar", "tensor", "histogram", "image"]


class TagListener(Protocol):
    """Who follows a model."""

    def watches(self, module: nn.Module) -> bool:
        """Tell the model that is followed from all other modules."""

    def tagged(self, kind: Kind, tag: str, value: Any) -> None:
        """A call of the model gave a value."""


_listeners: tuple[weakref.ref[TagListener], ...] = ()


def listen(listener: TagListener) -> None:
    """Tell ``listener``, as long as there is one, what its model gives from now on."""
    global _listeners
    alive = tuple(ref for ref in _listeners if ref() not in (None, listener))
    _listeners = (*alive, weakref.ref(listener))


def scalar(tag: str, value: Any) -> None:
    """Record a number where data is due: ``tag`` in the record.

    Parameters
    ----------
    tag : str
    value : number or tensor of one element
        Of more than one, none is recorded.

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

    Its first row are the edges of the bins, its second the counts, as `param_histogram` has them.

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
    if torch.compiler.is_compiling() or is_traced():
        return
    if not isinstance(tag, str) or not tag.strip():
        raise TypeError(f"{kind}({tag!r}, ...): the tag is text that is not empty")
    if not _listeners:
        return
    modules = [*running()]
    for listener in [one for ref in _listeners if (one := ref()) is not None]:
        if any(map(listener.watches, modules)):
            listener.tagged(kind, tag, value)
