"""Selection of trained parameters, by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from torch import Tensor, nn

__all__ = ["Chosen", "Group", "Names", "Params", "groups_of"]

Group: TypeAlias = "dict[str, Any]"

Params: TypeAlias = "nn.Module | Iterable[Any]"
"""Parameters as torch's optimizers take them, or a module, whose parameters have names."""

Names: TypeAlias = "str | Sequence[str] | None"


def groups_of(params: Params) -> list[Group]:
    """Return groups as torch's optimizers take them, each with a list of parameters.

    Examples
    --------
    >>> [group] = groups_of(nn.Linear(1, 1))
    >>> [name for name, value in group["params"]]
    ['weight', 'bias']
    """
    if isinstance(params, Tensor):
        raise TypeError("parameters are a module or an iterable of tensors, and this is a Tensor")
    given = [*(params.named_parameters() if isinstance(params, nn.Module) else params)]
    if not given or not isinstance(given[0], dict):
        given = [{"params": given}]
    return [{**group, "params": _listed(group["params"])} for group in given]


def _listed(params: Any) -> list[Any]:
    # torch takes a single tensor as the parameters of a group; iterating over it gives its rows.
    return [params] if isinstance(params, Tensor) else [*params]


class Chosen:
    """Selection of the trained parameters.

    Parameters
    ----------
    trainable_names : str or list of str, optional
        Train only parameters whose names begin with one of these.
    trainable_scope : str or list of str, optional
        Train only parameters among them whose names contain one of these.
    frozen_names : str or list of str, optional
        Exclude parameters among them whose names begin with one of these.
    """

    def __init__(
        self,
        trainable_names: Names = None,
        trainable_scope: Names = None,
        frozen_names: Names = None,
    ) -> None:
        self._rules = [
            _Rule("trainable_names", _texts(trainable_names), str.startswith, True),
            _Rule("trainable_scope", _texts(trainable_scope), str.__contains__, True),
            _Rule("frozen_names", _texts(frozen_names), str.startswith, False),
        ]

    @property
    def is_all(self) -> bool:
        """True if nothing was selected: all parameters are trained."""
        return all(rule.texts is None for rule in self._rules)

    def among(self, groups: Sequence[Group]) -> list[Group]:
        """Return the groups with the trained parameters only, without empty groups.

        Raises
        ------
        ValueError
            A text fits none of the parameters, these have no names, or none of them is left.
        """
        names = [_name(entry) for group in groups for entry in group["params"]]
        for rule in self._rules:
            rule.check(names)
        chosen = [
            {**group, "params": [one[1] for one in group["params"] if self._trains(_name(one))]}
            for group in groups
        ]  # without their names, which torch below 2.6 does not take
        kept = [group for group in chosen if group["params"]]
        if not kept:
            raise ValueError(f"no parameter is left to train of {_some(names)}")
        return kept

    def _trains(self, name: str) -> bool:
        return all(rule.trains(name) for rule in self._rules)


@dataclass(frozen=True, slots=True)
class _Rule:
    what: str
    texts: tuple[str, ...] | None
    fits: Callable[[str, str], bool]
    keeps: bool

    def trains(self, name: str) -> bool:
        if self.texts is None:
            return True
        return any(self.fits(name, text) for text in self.texts) == self.keeps

    def check(self, names: Sequence[str]) -> None:
        # A name that fits nothing is most often a typo, which would train or freeze too much.
        for text in self.texts or ():
            if not any(self.fits(name, text) for name in names):
                raise ValueError(f"{self.what}: {text!r} fits no parameter of {_some(names)}")


def _texts(given: Names) -> tuple[str, ...] | None:
    if given is None:
        return None
    texts = (given,) if isinstance(given, str) else tuple(given)
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"{text!r} among names of parameters: text is expected")
    return texts


def _name(entry: Any) -> str:
    if isinstance(entry, tuple) and len(entry) == 2:
        return str(entry[0])
    raise ValueError(
        "parameters are chosen by their names, and these have none: give the module, or "
        "model.named_parameters()"
    )


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:8])
    return f"{shown}, … ({len(names)})" if len(names) > 8 else shown or "none"
