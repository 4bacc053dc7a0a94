"""Loss on the probe batch as a function of some parameters, around their present values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, reduce
from typing import TypeAlias

import torch
from torch import Tensor

from notebook_probe.errors import UnreadableError
from notebook_probe.quantities.reduce.arrays import wide

__all__ = ["Landscape"]

Loss: TypeAlias = Callable[[Sequence[Tensor]], Tensor]

N_VECTORS = 64
"""Random vectors of a trace; as many parameters or fewer have an exact one."""


class Landscape:
    """The feature ``landscape``: a loss, its gradient and products with its Hessian.

    Directions and gradients are flat vectors of all parameters, at least float32. Each result is
    computed once for all quantities of a place and step.

    Parameters
    ----------
    loss : callable
        The loss with other tensors in place of those of ``point``; 0-d.
    point : sequence of Tensor
        Parameters at the point.
    tell : callable, optional
        Function called at each evaluation with a text about their number so far.
    of_samples : callable, optional
        Gives the losses of the single samples, each a function as ``loss`` is.

    Examples
    --------
    >>> bowl = Landscape(lambda point: 3 * point[0].square().sum(), [torch.tensor([1.0, 2.0])])
    >>> float(bowl.value), bowl.gradient, bowl.product(torch.tensor([1.0, 0.0]))
    (15.0, tensor([ 6., 12.]), tensor([6., 0.]))
    """

    def __init__(
        self,
        loss: Loss,
        point: Sequence[Tensor],
        tell: Callable[[str], None] = lambda text: None,
        of_samples: Callable[[], Iterable[Loss]] = tuple,
    ) -> None:
        # Leaves of a separate graph: gradients go here and never into the model's `.grad`.
        self.point = tuple(tensor.detach().requires_grad_() for tensor in point)
        self._loss, self._tell, self._of_samples = loss, tell, of_samples
        self._n_losses = self._n_products = 0

    @property
    def size(self) -> int:
        """Number of parameters, every element counted."""
        return sum(tensor.numel() for tensor in self.point)

    @property
    def position(self) -> Tensor:
        """A copy of the parameters as a flat vector."""
        return self.join(self.point).clone()

    @cached_property
    def value(self) -> Tensor:
        """The loss where the parameters are, 0-d float64."""
        with torch.no_grad():
            return self._evaluate(self.point).double()

    @cached_property
    def gradient(self) -> Tensor:
        """Gradient at the parameters, flat."""
        return self.join(self._slopes if "_slopes" in vars(self) else self._derive(False))

    def product(self, vector: Tensor) -> Tensor:
        """Return the Hessian times a flat vector, flat."""
        pairs = zip(self._slopes, self.split(vector), strict=True)
        self._n_products += 1
        self._tell_counts()
        curved = [(slope, part) for slope, part in pairs if slope.requires_grad]
        if not curved:  # the loss is linear in them
            return torch.zeros_like(vector)
        slopes, parts = zip(*curved, strict=True)
        return self.join(
            torch.autograd.grad(
                slopes,
                self.point,
                parts,
                retain_graph=True,
                allow_unused=True,
                materialize_grads=True,
            )
        )

    @cached_property
    def trace(self) -> Tensor:
        """Trace of the Hessian, 0-d float64: exact up to 64 parameters, above that an estimate.

        The mean over 64 vectors of random signs, always the same (Hutchinson).
        """
        # The same vectors at every step: the estimate has a constant error instead of noise.
        generator = torch.Generator().manual_seed(0)
        is_exact = self.size <= N_VECTORS
        if is_exact:
            vectors = torch.eye(self.size)
        else:
            vectors = 2.0 * torch.randint(0, 2, (N_VECTORS, self.size), generator=generator) - 1
        vectors = vectors.to(self.position)
        # v'Hv sums many products, so it is added in float64.
        products = [vector.dot(self.product(vector)).double() for vector in vectors]
        return torch.stack(products).sum() / (1 if is_exact else N_VECTORS)

    def samples(self) -> Iterator[Landscape]:
        """Yield the landscape of each sample's own loss; none where those are not known.

        Raises
        ------
        UnreadableError
            The batch cannot be taken apart.
        """
        for number, loss in enumerate(self._of_samples()):
            self._tell(f"sample {number}")
            yield Landscape(loss, self.point)

    def loss_at(self, offset: Tensor) -> Tensor:
        """Return the loss at ``position + offset``, 0-d float64."""
        self._check()
        pairs = zip(self.point, self.split(offset), strict=True)
        return self.loss_of([own.detach() + part for own, part in pairs])

    def loss_of(self, point: Sequence[Tensor]) -> Tensor:
        """Return the loss of other parameters, 0-d float64."""
        with torch.no_grad():
            return self._evaluate(point).double()

    def split(self, vector: Tensor) -> tuple[Tensor, ...]:
        """Return a flat vector in parts of the parameters' own shapes and kinds."""
        parts = vector.split([tensor.numel() for tensor in self.point])
        return tuple(
            part.reshape(own.shape).to(own.device, own.dtype)
            for part, own in zip(parts, self.point, strict=True)
        )

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Return a flat vector of parts like those of the parameters."""
        self._check()
        home = self.point[0].device
        dtype = reduce(torch.promote_types, (own.dtype for own in self.point), torch.float32)
        return torch.cat([wide(part).reshape(-1).to(home, dtype) for part in parts])

    @cached_property
    def _slopes(self) -> tuple[Tensor, ...]:
        """The gradient, with the graph by which it is derived again."""
        return self._derive(True)

    def _derive(self, create_graph: bool) -> tuple[Tensor, ...]:
        self._check()
        loss = self._evaluate(self.point)
        # The loss is known from this pass, so `value` needs no other one.
        vars(self).setdefault("value", loss.detach().double())
        if not loss.requires_grad:
            raise UnreadableError("the loss of the probe batch does not depend on these parameters")
        # Unused parameters have slope 0: a probe may be at a part that this batch does not reach.
        return torch.autograd.grad(
            loss, self.point, create_graph=create_graph, allow_unused=True, materialize_grads=True
        )

    def _check(self) -> None:
        """Raise UnreadableError where there is nothing to derive by."""
        if not self.point:
            raise UnreadableError("nothing there requires a gradient")
        if any(tensor.is_complex() for tensor in self.point):
            raise UnreadableError("the loss has no real derivatives by complex parameters")

    def _evaluate(self, point: Sequence[Tensor]) -> Tensor:
        self._n_losses += 1
        self._tell_counts()
        return self._loss(point)

    def _tell_counts(self) -> None:
        self._tell(f"{self._n_losses} losses, {self._n_products} Hessian products")
