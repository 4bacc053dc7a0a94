"""Series of earlier steps, measured afterwards in stored checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from notebook_probe.errors import CheckpointError
from notebook_probe.model.selectors import Where
from notebook_probe.record.store.location import Location
from notebook_probe.run.attach.request import QuantityLike
from notebook_probe.run.run import Run
from notebook_probe.schedules import Steps
from notebook_probe.train.checkpoints.fitting import fitted
from notebook_probe.train.checkpoints.index import Checkpoint
from notebook_probe.train.checkpoints.places import place_at, read_state
from notebook_probe.train.checkpoints.sharded import laid_out
from notebook_probe.train.checkpoints.store import CheckpointStore
from notebook_probe.train.data.batch import Batch, read_item
from notebook_probe.train.trainer.evaluation import evaluating
from notebook_probe.train.trainer.forward import Forward

__all__ = ["recompute"]

Checkpoints: TypeAlias = "Location | list[Checkpoint]"


def recompute(
    run: Run,
    checkpoints: Checkpoints,
    quantity: QuantityLike | Sequence[QuantityLike] | None,
    where: Where | Mapping[Any, Any] = "*",
    data: Iterable[Any] | None = None,
) -> list[int]:
    """Measure a quantity in stored checkpoints, each at its step of the record.

    The model is evaluated with the weights of one checkpoint after the other; its weights, modes
    and buffers, and the random generators, are restored afterwards. The series is named like that
    of an evaluation: ``run.series("body.0", "eval_effective_rank")``. Other series do not change.

    Parameters
    ----------
    run : Run
        Run that watches the model; after the end of a training, a run that continues its record.
    checkpoints : path, URL, store or list of Checkpoint
        Checkpoints to use. For a folder, those of the training that saved the last one;
        ``loop.checkpoints`` is a list.
    quantity : str, Quantity, function or a list of these
        Quantities that an evaluation can measure: of inputs and outputs, not of gradients.
    where : selection or dict
        Same as in `Run.attach`; for a dict, which names quantities itself, ``quantity`` is None.
    data : iterable of batches, optional
        Same as in `Trainer.eval`; labels are ignored. By default the batch that `Run.probe_batch`
        has stored.

    Returns
    -------
    list of int
        Measured steps.

    Raises
    ------
    CheckpointError
        There is no checkpoint, or a checkpoint cannot be read or is of another model.
    ValueError
        There is neither ``data`` nor a stored batch.
    RuntimeError
        Another thread trains the model.
    TypeError
        ``run`` does not watch a model, such as an opened record.

    Examples
    --------
    >>> nbp.recompute(run, "checkpoints", "effective_rank", "body.*", loader)  # doctest: +SKIP
    [500, 1000, 1500]
    """
    if not isinstance(run, Run):
        raise TypeError(
            f"recompute({type(run).__name__}): a run that watches the model is expected; of a "
            f"record that is nbp.watch(model, store=..., resume=True)"
        )
    listed = _listed(checkpoints)
    steps = sorted({one.step for one, _ in listed})
    batches = _batches(run, data)
    forward = Forward(run.controls.model, None, labels_first=False)
    model = run.controls.model
    # Copies, as a checkpoint is loaded into these same tensors.
    own = {name: value.detach().clone() for name, value in model.named_parameters()}
    run.controls.settle()
    with run.attach(where, quantity, Steps(steps), phase="eval") as handle:
        try:
            for one, state in listed:
                weights = _weights(model, state(), one.path)
                with evaluating(model), run.at_step(one.step, only=handle):
                    model.load_state_dict(weights, strict=False)
                    for batch in batches():
                        forward.output(batch)
        finally:
            _put_back(model, own)
    run.flush()
    return steps


def _listed(checkpoints: Checkpoints) -> list[tuple[Checkpoint, Any]]:
    """Checkpoints, and what reads each."""
    if isinstance(checkpoints, list):
        found = [(one, _reader(one)) for one in checkpoints]
    else:
        store = CheckpointStore(checkpoints)
        found = [(one, lambda name=one.name: store.read(name)) for one in store.last_line()]
    if not found:
        raise CheckpointError(f"no checkpoint in {checkpoints!r}: nothing to measure")
    return found


def _reader(one: Checkpoint) -> Any:
    place = place_at(one.path.removesuffix(f"/{one.name}"))
    return lambda: read_state(place, one.name)


def _weights(model: nn.Module, state: dict[str, Any], where: str) -> dict[str, Tensor]:
    """Weights and buffers of a checkpoint, which must be of this model."""
    found = fitted(state.get("trainer", {}).get("model", {}), model.state_dict())
    if found.differences:
        raise CheckpointError(f"{where} is of another model: {found.differences}")
    return laid_out(found.state, model)


def _put_back(model: nn.Module, own: dict[str, Tensor]) -> None:
    with torch.no_grad():
        for name, value in model.named_parameters():
            value.copy_(own[name])


def _batches(run: Run, data: Iterable[Any] | None) -> Callable[[], Iterator[Batch]]:
    """Return a function that yields the batches, once per checkpoint, on the model's device."""
    if data is None:
        kept = run.controls.kept_batch
        if kept is None:
            raise ValueError(
                "recompute: of which data? give batches, or keep one by run.probe_batch before"
            )
        args, kwargs = kept
        return lambda: iter([Batch(None, args, (), kwargs)])
    # An iterator can be read only once, and each checkpoint needs all of it.
    items = list(data) if isinstance(data, Iterator) else data
    parameter = next(run.controls.model.parameters(), None)
    device = torch.device("cpu") if parameter is None else parameter.device
    return lambda: (read_item(item).to(device) for item in items)
