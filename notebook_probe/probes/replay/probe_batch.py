"""Batch that is kept, and the model's outputs and loss for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.parameter import is_lazy
from torch.utils._pytree import tree_map_only

from notebook_probe.errors import NotApplicableError, QuantityError, UnreadableError
from notebook_probe.probes.replay.isolation import untouched
from notebook_probe.probes.replay.random_state import RandomState
from notebook_probe.probes.step.containers import copied, tensors_of
from notebook_probe.quantities.reduce.arrays import local, readable
from notebook_probe.uninterrupted import uninterrupted

__all__ = ["ProbeBatch"]


@dataclass(frozen=True, eq=False)
class ProbeBatch:
    """Copies of a batch, the loss of it, and the random state in which it is always evaluated."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    targets: Any
    loss_fn: Callable[[Any, Any], Tensor]
    random: RandomState

    @classmethod
    def of(cls, inputs: Any, targets: Any, loss_fn: Callable[[Any, Any], Tensor]) -> ProbeBatch:
        """Keep copies of a batch.

        Parameters
        ----------
        inputs : tensor, tuple or mapping
            Input of the model's call: a tuple is its arguments, a mapping its keywords.
        targets : anything
        loss_fn : callable
            ``loss_fn(outputs, targets)`` gives one real number.
        """
        if not callable(loss_fn):
            raise QuantityError(
                f"probe_batch(loss_fn={loss_fn!r}): a function of the outputs and the targets is "
                f"needed, such as torch.nn.functional.cross_entropy"
            )
        kwargs = {**inputs} if isinstance(inputs, Mapping) else {}
        args = () if kwargs else inputs if isinstance(inputs, tuple) else (inputs,)
        devices = {tensor.device for tensor in tensors_of([args, kwargs, targets])}
        if torch.device("meta") in devices:
            raise QuantityError("probe_batch: tensors on the device 'meta' hold no values")
        with uninterrupted, torch.no_grad(), torch.inference_mode(False):
            return cls(
                copied(args), copied(kwargs), copied(targets), loss_fn, RandomState.now(devices)
            )

    def __str__(self) -> str:
        given, wanted = (", ".join(map(_described, tensors_of(part))) for part in self._parts)
        name = getattr(self.loss_fn, "__name__", type(self.loss_fn).__name__)
        return f"inputs {given or 'without tensors'}; targets {wanted or 'without tensors'}; {name}"

    @property
    def _parts(self) -> tuple[Any, Any]:
        return [self.args, self.kwargs], self.targets

    @property
    def content(self) -> list[Any]:
        """Shape and sum of each input, by which a batch is recognized."""
        inputs = (readable(one).cpu() for one in tensors_of([self.args, self.kwargs]))
        return [[*one.shape, float(one.double().sum())] for one in inputs]

    def outputs(self, model: nn.Module, parameters: Mapping[str, Tensor]) -> Any:
        """Run ``model`` with ``parameters`` instead of the own ones; inside `untouched`."""
        self.random.set()
        own = {name: value.detach() for name, value in model.named_parameters()}
        # Copies, as a forward may write into buffers, and into its inputs.
        buffers = {name: value.detach().clone() for name, value in model.named_buffers()}
        args, kwargs = copied(self.args), copied(self.kwargs)
        return functional_call(model, {**own, **buffers, **parameters}, args, kwargs)

    def loss(self, model: nn.Module, parameters: Mapping[str, Tensor]) -> Tensor:
        """Return the loss of it, 0-d; inside `untouched`.

        Raises
        ------
        QuantityError
            ``loss_fn`` returns anything but one real number.
        """
        loss = self.loss_fn(self.outputs(model, parameters), copied(self.targets))
        if not isinstance(loss, Tensor) or loss.numel() != 1 or not loss.is_floating_point():
            returned = f"a {type(loss).__name__}"
            if isinstance(loss, Tensor):
                returned = f"a tensor of shape {tuple(loss.shape)} and {loss.dtype}"
            raise QuantityError(
                f"probe_batch: loss_fn returned {returned}; one real number as a tensor is needed"
            )
        return loss.reshape(())

    def samples(self) -> list[ProbeBatch]:
        """Split the batch into its samples: the entries along the first axis.

        Every tensor that is as long as the first input is taken apart, all else goes with each.

        Raises
        ------
        UnreadableError
            No input is a tensor with such an axis.
        """
        sizes = [len(tensor) for tensor in tensors_of([self.args, self.kwargs]) if tensor.dim()]
        if not sizes:
            raise UnreadableError("probe_batch: no input has an axis of samples")

        def part(number: int) -> ProbeBatch:
            def of(value: Any) -> Any:
                return tree_map_only(Tensor, taken, value)

            def taken(tensor: Tensor) -> Tensor:
                is_whole = not tensor.dim() or len(tensor) != sizes[0]
                return tensor if is_whole else tensor[number : number + 1]

            return replace(
                self, args=of(self.args), kwargs=of(self.kwargs), targets=of(self.targets)
            )

        return [*map(part, range(sizes[0]))]

    def untouched(self, model: nn.Module) -> Any:
        """Return a context in which ``model`` may be evaluated; afterwards all is restored.

        Raises
        ------
        NotApplicableError
            Parameters that are split over processes: calling the model would wait for the others.
        UnreadableError
            Lazy parameters, which the first call would give a shape.
        """
        _check(model)
        modules = [model, *([self.loss_fn] if isinstance(self.loss_fn, nn.Module) else [])]
        return untouched(modules, {tensor.device for tensor in self._tensors(modules)})

    def _tensors(self, modules: list[nn.Module]) -> Iterator[Tensor]:
        yield from tensors_of(self._parts)
        for module in modules:
            yield from module.parameters()
            yield from module.buffers()


def _check(model: nn.Module) -> None:
    """Raise if the model cannot be run by this process alone, and now."""
    values = [*model.parameters(), *model.buffers()]
    if any(map(is_lazy, values)):
        raise UnreadableError("probe_batch: some parameters are lazy; call the model once first")
    if any(local(value) is not value for value in values):
        raise NotApplicableError(
            "probe_batch: the parameters are split over processes, so that one process alone "
            "cannot run the model; use a replica, as of DistributedDataParallel"
        )


def _described(tensor: Tensor) -> str:
    return f"{tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"
