"""The places of a model: its modules and parameters under the names that their user gave them.

``torch.compile`` puts a wrapper round a module, with the module in it as ``_orig_mod``. Such a part
keeps its name: its place is the wrapper, whose hooks run outside of what is compiled, and
``_orig_mod`` stands in no name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from torch import nn

__all__ = ["modules_of", "named", "parameters_at"]

Named = TypeVar("Named")


def named(pairs: Iterable[tuple[str, Named]]) -> Iterator[tuple[str, Named]]:
    """The pairs of ``named_modules`` or ``named_parameters`` with the users' names."""
    for name, one in pairs:
        if "_orig_mod" in name:
            name = ".".join(part for part in name.split(".") if part != "_orig_mod")
        yield name, one


def modules_of(model: nn.Module, every_path: bool = False) -> dict[str, nn.Module]:
    """Modules by path: by their first one, or by every path that leads to them."""
    found: dict[str, nn.Module] = {}
    for path, module in named(model.named_modules(remove_duplicate=not every_path)):
        found.setdefault(path, module)  # the wrapper comes before what is in it
    return found


def parameters_at(model: nn.Module, every_path: bool = False) -> dict[str, nn.Parameter]:
    """Parameters by path, as `modules_of`."""
    return dict(named(model.named_parameters(remove_duplicate=not every_path)))
