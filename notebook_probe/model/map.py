"""The map of a model: its modules and parameters under the names that their user gave them.

``torch.compile`` puts a wrapper around a module, with the module in it as ``_orig_mod``. Such a
part keeps its name: its place is the wrapper, whose hooks run outside of the compiled code, and
``_orig_mod`` is in no name.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Iterator
from functools import cached_property
from typing import TypeVar

from torch import nn

from notebook_probe.model.changes import Tree
from notebook_probe.model.parameter_slots import Slot, distinct, own_slots, weight_slots
from notebook_probe.model.reparametrized import UsedWeight, used_in
from notebook_probe.model.unwrapped import unwrapped, without_wrappers

__all__ = ["ModelMap"]

Key = TypeVar("Key", bound=Hashable)


class ModelMap:
    """Modules and parameters of a model by path, found in one walk.

    It is made once per structure of the model, passed on, and never changes: after `has_changed`,
    make a new one. A module or parameter with several paths is named by the first of them, in
    definition order.

    Parameters
    ----------
    model : nn.Module
        Referenced weakly, like all its modules; collected modules are in no mapping any more.

    Attributes
    ----------
    paths : tuple of str
        The first path of every module, in definition order.
    modules : mapping of str to nn.Module
        Modules by first path, in definition order; the inner module of a compiled wrapper. The path
        ``""`` is the model itself.
    by_every_path : mapping of str to nn.Module
        Modules by every path to them; compiled wrappers themselves.
    parameters : mapping of str to Slot
        Slots by first path, in definition order.

    Examples
    --------
    >>> layer = nn.Linear(2, 2)
    >>> model = nn.Sequential(layer, nn.ReLU(), layer)
    >>> model_map = ModelMap(model)
    >>> [*model_map.modules], [*model_map.parameters]
    (['', '0', '1'], ['0.weight', '0.bias'])
    >>> model_map.first_path("2.bias"), model_map.path_of(layer)
    ('0.bias', '0')
    """

    def __init__(self, model: nn.Module) -> None:
        self.class_name = type(model).__name__
        self.modules: weakref.WeakValueDictionary[str, nn.Module] = weakref.WeakValueDictionary()
        self.by_every_path = weakref.WeakValueDictionary[str, nn.Module]()
        self.parameters: dict[str, Slot] = {}
        self._first: dict[str, str] = {}
        self._places: weakref.WeakKeyDictionary[nn.Module, str] = weakref.WeakKeyDictionary()
        self._lie: list[Slot] = []
        self._below: dict[str, tuple[int, int]] = {}
        self._known: dict[tuple[str, bool], tuple[Slot, ...]] = {}
        self._used: dict[Slot, UsedWeight] = {}
        self._tree = Tree(self._walked(model))
        self.paths = tuple(self.modules)

    def _walked(self, model: nn.Module) -> Iterator[nn.Module]:
        """Walk the model once; gives every module once."""
        ways: list[tuple[str, int]] = []  # from the root to where the walk is, and their slots
        by_identity: dict[int, str] = {}
        for path, module in model.named_modules(remove_duplicate=False):
            while ways and not _leads(ways[-1][0], path):
                self._leave(*ways.pop())
            ways.append((path, len(self._lie)))
            name = without_wrappers(path)
            is_new = module not in self._places
            first = self._places.setdefault(module, name)
            self._first.setdefault(name, first)
            if name not in self.by_every_path:  # a wrapper comes before what is in it
                self.by_every_path[name] = module
                if is_new:
                    self.modules[name] = unwrapped(module)
            self._note_parameters(name, module, by_identity)
            if is_new:
                yield module
        while ways:
            self._leave(*ways.pop())

    def _note_parameters(self, path: str, module: nn.Module, by_identity: dict[int, str]) -> None:
        self._used.update(used_in(module))
        for slot in own_slots(module):
            self._lie.append(slot)
            value = slot.get()
            if value is not None:
                name = f"{path}.{slot.name}" if path else slot.name
                first = by_identity.setdefault(id(value), name)
                self._first.setdefault(name, first)
                if first == name:
                    self.parameters[name] = slot

    def _leave(self, path: str, start: int) -> None:
        """Note the end of everything below a path; a wrapper ends after its contents."""
        self._below[without_wrappers(path)] = start, len(self._lie)

    # ---------------------------------------------------------------- asking

    def has_changed(self, n_steps: int = 1) -> bool:
        """Compare a part of it with the present model; a larger one after several steps."""
        return self._tree.has_changed(n_steps)

    def differs(self) -> bool:
        """Compare all of it with the present model."""
        return self._tree.differs()

    def first_path(self, path: str) -> str | None:
        """Return the first path of a module or parameter; None if the path has neither."""
        return self._first.get(path)

    def path_of(self, module: nn.Module) -> str | None:
        """Return the first path of a module, or of its compiled wrapper; None if unknown."""
        return self._places.get(module)

    def slots(self, place: str, below: bool = False) -> tuple[Slot, ...]:
        """Return the slots of the parameters at a place: a module's weight, or one parameter.

        With ``below`` all parameters of the module and those below it, each once.
        """
        key = place, below
        if key not in self._known:
            self._known[key] = self._slots(place, below)
        return self._known[key]

    def weights(self, place: str, below: bool = False) -> tuple[Slot, ...]:
        """Return the slots of `slots`, with the used weight in place of what it is computed from.

        A place within a parametrization, or one parameter, means the stored parameters.
        """
        found = self.slots(place, below)
        if not self._used or place not in self.by_every_path:
            return found
        return tuple(dict.fromkeys(self._used_at(place, slot) for slot in found))

    def _used_at(self, place: str, slot: Slot) -> Slot:
        used = self._used.get(slot)
        owner = used.owner() if used is not None else None
        path = self._places.get(owner) if owner is not None else None
        is_there = path is not None and (path == place or _leads(place, path))
        return used if used is not None and is_there else slot

    def _slots(self, place: str, below: bool) -> tuple[Slot, ...]:
        module = self.by_every_path.get(place)
        if module is None:
            owner, _, name = place.rpartition(".")
            owns = self.by_every_path.get(owner)
            return (Slot(weakref.ref(unwrapped(owns)), name),) if owns is not None else ()
        if below:
            start, stop = self._below[place]
            return tuple(distinct(self._lie[start:stop]))
        return tuple(weight_slots(module))

    def has_parameters(self, place: str) -> bool:
        """Return whether there is any parameter at a place, or below it."""
        return any(slot.get() is not None for slot in self.slots(place, below=True))

    def paths_of(self, module: nn.Module) -> tuple[str, ...]:
        """First paths of a module: its own, and that of a compiled wrapper elsewhere."""
        module = unwrapped(module)
        found = self._paths_by_identity.get(id(module), ())
        # An identity may belong to another module once the first is gone.
        return tuple(path for path in found if self.modules.get(path) is module)

    @cached_property
    def paths_by_class(self) -> dict[str, tuple[str, ...]]:
        """Paths of the modules whose class has this name."""
        return _grouped((type(module).__name__, path) for path, module in self.modules.items())

    @cached_property
    def paths_by_base_class(self) -> dict[str, tuple[str, ...]]:
        """Paths of the modules one of whose classes has this name."""
        return _grouped(
            (name, path)
            for path, module in self.modules.items()
            for name in dict.fromkeys(kind.__name__ for kind in type(module).__mro__)
        )

    @cached_property
    def _paths_by_identity(self) -> dict[int, tuple[str, ...]]:
        return _grouped((id(module), path) for path, module in self.modules.items())


def _leads(path: str, to: str) -> bool:
    return not path or to.startswith(f"{path}.")


def _grouped(pairs: Iterator[tuple[Key, str]]) -> dict[Key, tuple[str, ...]]:
    groups: dict[Key, list[str]] = {}
    for key, path in pairs:
        groups.setdefault(key, []).append(path)
    return {key: tuple(paths) for key, paths in groups.items()}
