"""All parameters of a model at one moment of its training, and the buffers that go with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from notebook_probe.errors import CheckpointError
from notebook_probe.train.checkpoints.fitting import fitted

__all__ = ["ModelSnapshot", "is_moved"]

FORMAT = 1


def is_moved(name: str, value: Tensor) -> bool:
    """Return whether a landscape moves a parameter: a real weight or bias, by its name.

    ``norm.weight`` and ``lstm.weight_ih_l0`` are moved; ``cls_token`` and ``pos_embed`` are not.
    """
    return ("weight" in name or "bias" in name) and value.is_floating_point()


@dataclass(frozen=True, slots=True, eq=False)
class ModelSnapshot:
    """The state of a model after a number of units, on the host.

    Attributes
    ----------
    number : int
    parameters, buffers : mapping of str to Tensor
        Tensors by name; shared parameters once, and buffers that ``state_dict`` has.
    """

    number: int
    parameters: Mapping[str, Tensor]
    buffers: Mapping[str, Tensor]

    @classmethod
    def of(
        cls, model: nn.Module, number: int, copy: Callable[[Tensor], Tensor] = Tensor.clone
    ) -> ModelSnapshot:
        """Copy the present state of a model."""
        # Buffers that are not saved with the model are computed by it, such as masks.
        kept = model.state_dict().keys()
        buffers = {name: value for name, value in model.named_buffers() if name in kept}
        return cls(
            number,
            {name: copy(value.detach()) for name, value in model.named_parameters()},
            {name: copy(value.detach()) for name, value in buffers.items()},
        )

    @classmethod
    def read(cls, state: Mapping[str, Any], where: str) -> ModelSnapshot:
        """Parse the result of `state`.

        Raises
        ------
        CheckpointError
            For anything else.
        """
        if state.get("format") != FORMAT or not {"number", "parameters", "buffers"} <= {*state}:
            raise CheckpointError(f"{where} is no snapshot of a landscape")
        return cls(state["number"], state["parameters"], state["buffers"])

    def state(self) -> dict[str, Any]:
        """Return plain tensors and numbers, to be saved."""
        return {
            "format": FORMAT,
            "number": self.number,
            "parameters": {**self.parameters},
            "buffers": {**self.buffers},
        }

    @property
    def moved(self) -> dict[str, Tensor]:
        """The parameters that a landscape moves."""
        return {name: own for name, own in self.parameters.items() if is_moved(name, own)}

    @property
    def nbytes(self) -> int:
        """Bytes of all its tensors."""
        values = [*self.parameters.values(), *self.buffers.values()]
        return sum(value.numel() * value.element_size() for value in values)

    def check(self, model: nn.Module) -> None:
        """Raise CheckpointError unless it is of such a model, with all that differs."""
        saved = {**self.parameters, **self.buffers}
        own = ModelSnapshot.of(model, 0, copy=lambda value: value)
        differences = fitted(saved, {**own.parameters, **own.buffers}).differences
        if differences:
            raise CheckpointError(
                f"snapshot {self.number} does not fit {type(model).__name__}: {differences}"
            )
