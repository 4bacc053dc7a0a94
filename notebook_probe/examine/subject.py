"""A copy of a model with a batch and a loss, which checks call as they like."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils._pytree import tree_map_only

from notebook_probe.errors import NotApplicableError
from notebook_probe.model.unwrapped import unwrap
from notebook_probe.probes.reading.options import owned_by
from notebook_probe.probes.step.containers import first_of, tensors_of

__all__ = [
    "Arguments",
    "LossFunction",
    "Subject",
    "TrainedStep",
    "buffers_put_back",
    "copied",
    "first_output",
]

LossFunction: TypeAlias = Callable[..., Tensor]

HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments of a call of a model."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    @classmethod
    def of(cls, inputs: Any) -> Arguments:
        """Return positional arguments of a tuple, named ones of a mapping, else a single one."""
        if isinstance(inputs, Arguments):
            return inputs
        if isinstance(inputs, Mapping):
            return cls((), dict(inputs))
        return cls(inputs if isinstance(inputs, tuple) else (inputs,), {})

    @property
    def tensors(self) -> list[Tensor]:
        """All tensors among them, at any depth."""
        return tensors_of([self.args, dict(self.kwargs)])

    @property
    def first(self) -> Tensor | None:
        """The first tensor with samples: floats or tokens."""
        return next((one for one in self.tensors if one.ndim and one.numel()), None)

    def replacing(self, old: Tensor, new: Tensor) -> Arguments:
        """Return the same with another tensor in the place of one."""
        return self.changed(lambda one: new if one is old else one)

    def changed(self, change: Callable[[Tensor], Tensor]) -> Arguments:
        """Return the same with every tensor changed."""
        args, kwargs = tree_map_only(Tensor, change, (self.args, dict(self.kwargs)))
        return Arguments(args, kwargs)


@dataclass(frozen=True, slots=True)
class TrainedStep:
    """One forward and backward in training mode.

    Attributes
    ----------
    loss : Tensor
        With its graph.
    gradients : dict of str to Tensor or None
        Gradient of each parameter that is to be trained.
    """

    loss: Tensor
    gradients: Mapping[str, Tensor | None]


class Subject:
    """Model, batch and loss that are examined.

    Parameters
    ----------
    model : nn.Module
        A copy, with which nobody trains.
    inputs : Arguments
    targets : object
        None where the loss needs none.
    loss : callable, optional
        ``loss(output, targets)``, or ``loss(output)`` where there are no targets. Without one the
        attribute or the item ``loss`` of the output is taken, as models of transformers have it.
    held : set of str, optional
        Names of parameters that an optimizer holds; None where no optimizer is known.
    n_strangers : int
        Parameters of optimizers that the model does not have.
    """

    def __init__(
        self,
        model: nn.Module,
        inputs: Arguments,
        targets: Any = None,
        loss: LossFunction | None = None,
        held: set[str] | None = None,
        n_strangers: int = 0,
    ) -> None:
        self.model, self.inputs, self.targets, self.loss = model, inputs, targets, loss
        self.held, self.n_strangers = held, n_strangers

    @classmethod
    def of(
        cls,
        model: nn.Module,
        optimizers: Sequence[Optimizer],
        inputs: Any,
        targets: Any = None,
        loss: LossFunction | None = None,
    ) -> Subject:
        """Return a subject with a copy of the model.

        Parameters
        ----------
        model : nn.Module
        optimizers : sequence of Optimizer
            Known optimizers that train the model.
        inputs : Tensor, tuple or mapping
            A tuple is the model's arguments, a mapping its keywords.
        targets, loss
            Targets and loss function of the subject.

        Raises
        ------
        NotApplicableError
            The model cannot be copied.
        """
        own = {id(one): name for name, one in unwrap(model).named_parameters()}
        owned = set[int]().union(*map(owned_by, optimizers))
        held = {own[key] for key in owned & own.keys()} if optimizers else None
        n_strangers = len(owned - own.keys())
        return cls(copied(model), Arguments.of(inputs), targets, loss, held, n_strangers)

    @property
    def trainable(self) -> dict[str, nn.Parameter]:
        """Parameters that require a gradient, by name."""
        return {name: one for name, one in self.model.named_parameters() if one.requires_grad}

    @cached_property
    def evaluated(self) -> Any:
        """Result of the model in evaluation mode, with its graph; computed once for all checks."""
        with buffers_put_back(self.model):
            return self.call()

    @cached_property
    def plain_output(self) -> Tensor | None:
        """First tensor of `evaluated`, without its graph; None if there is none."""
        found = first_output(self.evaluated)
        return None if found is None else found.detach()

    @cached_property
    def trained(self) -> TrainedStep | None:
        """Result of `train`; computed once for all checks."""
        return self.train()

    def call(self, inputs: Arguments | None = None, *, trains: bool = False, seed: int = 0) -> Any:
        """Call the model, which may write into its buffers."""
        inputs = self.inputs if inputs is None else inputs
        # Equal random numbers: calls differ by what differs in them, and not by dropout.
        torch.manual_seed(seed)
        self.model.train(trains)
        return self.model(*inputs.args, **inputs.kwargs)

    def output(self, inputs: Arguments | None = None, *, seed: int = 0) -> Tensor | None:
        """Return the first tensor that the model returns in evaluation mode; None without one."""
        with torch.no_grad(), buffers_put_back(self.model):
            return first_output(self.call(inputs, seed=seed))

    def loss_of(self, output: Any) -> Tensor | None:
        """Return the loss of what the model has returned; None where none is known."""
        if self.loss is not None:
            given = (output,) if self.targets is None else (output, self.targets)
            return self.loss(*given)
        found = output.get("loss") if isinstance(output, Mapping) else None
        found = getattr(output, "loss", None) if found is None else found
        return found if isinstance(found, Tensor) and not found.ndim else None

    def train(self) -> TrainedStep | None:
        """Run one forward and backward in training mode; None where no loss is known."""
        trainable = self.trainable
        found: Sequence[Tensor | None] = [None] * len(trainable)
        with buffers_put_back(self.model):
            loss = self.loss_of(self.call(trains=True))
            if loss is None:
                return None
            if loss.requires_grad and trainable:
                found = torch.autograd.grad(
                    loss, [*trainable.values()], allow_unused=True, retain_graph=True
                )
        return TrainedStep(loss, dict(zip(trainable, found, strict=True)))


def first_output(output: Any) -> Tensor | None:
    """Return the first tensor of an output that has a value for each sample."""
    tensors = [one for one in tensors_of(output) if one.ndim]
    return first_of(tensors) if tensors else None


def copied(model: nn.Module) -> nn.Module:
    """Return a copy of the model inside its wrappers, without hooks but torch's own.

    Raises
    ------
    NotApplicableError
        It cannot be copied.
    """
    try:
        found = copy.deepcopy(unwrap(model))
    except Exception as error:
        raise NotApplicableError(
            f"{type(model).__name__} cannot be copied, and is examined as a copy only: "
            f"{type(error).__name__}: {error}"
        ) from error
    for part in found.modules():
        # The nodes of compiled code do not tell its operations, which checks read.
        part._compiled_call_impl = None
        for name in HOOKS:
            own = part.__dict__[name]
            part.__dict__[name] = OrderedDict(
                (key, hook) for key, hook in own.items() if _is_of_torch(hook)
            )
    return found


def _is_of_torch(hook: Any) -> bool:
    """Return whether a hook is one of torch, which may compute weights, as for spectral norm."""
    home = getattr(hook, "__module__", None) or type(hook).__module__
    return home.partition(".")[0] == "torch"


@contextmanager
def buffers_put_back(model: nn.Module) -> Iterator[None]:
    """Put buffers back as they were before the block."""
    buffers = [(one, one.detach().clone()) for one in model.buffers()]
    try:
        yield
    finally:
        with torch.no_grad():
            for now, before in buffers:
                if now.shape == before.shape:
                    now.copy_(before)
