"""Graphs that Dynamo has for a model: how many variants there are, and how it forgets them."""

from __future__ import annotations

from types import CodeType

from torch import nn
from torch._C._dynamo import eval_frame
from torch._dynamo import external_utils

from notebook_probe.probes.inside.uncompiled import is_of_torch

__all__ = ["forget_graphs", "most_variants"]


def forget_graphs(model: nn.Module) -> None:
    """Reset the graphs of a model, so that its next call compiles them again."""
    for code in _forwards(model):
        eval_frame.reset_code(code)


def most_variants(model: nn.Module) -> int:
    """Return the number of variants of that function of a model which has the most."""
    return max(len(eval_frame._debug_get_cache_entry_list(code)) for code in _forwards(model))


def _forwards(model: nn.Module) -> list[CodeType]:
    """Return the code of every forward of a model's classes, to which Dynamo ties its graphs.

    The code in which Dynamo wraps a forward of torch's own, such as that of `nn.Sequential`, in
    their place.
    """
    kinds = {type(module): None for module in model.modules() if not is_of_torch(module)}
    # One that is scripted has none.
    codes = (getattr(getattr(kind, "forward", None), "__code__", None) for kind in kinds)
    return [external_utils.wrap_inline(len).__code__, *(code for code in codes if code is not None)]
