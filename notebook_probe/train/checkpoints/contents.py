"""What is in a checkpoint, and putting it back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from notebook_probe.errors import CheckpointError
from notebook_probe.model.unwrapped import unwrap
from notebook_probe.probes.parameters.stepped import stepped_by
from notebook_probe.run.run import Run
from notebook_probe.train.checkpoints.fitting import Fitted, Wanted, fitted
from notebook_probe.train.checkpoints.memory import Memory
from notebook_probe.train.checkpoints.plain import copied
from notebook_probe.train.checkpoints.ranks import gathered, own_rank
from notebook_probe.train.checkpoints.sharded import laid_out, optimizer_laid_out
from notebook_probe.train.trainer.trainer import Trainer

__all__ = [
    "Stateful",
    "Training",
    "check",
    "check_format",
    "contents",
    "differences",
    "optimizer_differences",
    "restore",
]

FORMAT = "notebook_probe.train 1"


class Stateful(Protocol):
    """What has a state to go on from."""

    def state_dict(self) -> Any: ...
    def load_state_dict(self, state: Any, /) -> Any: ...


class Training(Protocol):
    """What is saved: a loop."""

    trainer: Trainer
    objects: dict[str, Stateful]
    last_metrics: dict[str, Any]
    replaying: bool

    @property
    def run(self) -> Run | None: ...
    @property
    def n_updates(self) -> int: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...
    def begin_at(self, step: int) -> None: ...
    def state_metrics(self) -> dict[str, float]: ...


def contents(loop: Training, memory: Memory) -> dict[str, Any]:
    """All that a training needs to go on as if it had never stopped, copied into that memory.

    Where several processes train together each of them calls it.

    Raises
    ------
    CheckpointError
        Something in it could be read back only by running code.
    """
    run = loop.run
    whole = {
        "format": FORMAT,
        "step": loop.n_updates,
        "trainer": loop.trainer.state_dict(),
        "optimizer": _optimizer_named(loop.trainer),
        "objects": {name: one.state_dict() for name, one in loop.objects.items()},
        "metrics": {name: float(value) for name, value in loop.last_metrics.items()},
        "record": None if run is None else {"location": str(run.location), "step": loop.n_updates},
    }
    return {**copied(whole, memory), "loops": gathered(copied(loop.state_dict(), memory))}


def restore(
    loop: Training,
    state: dict[str, Any],
    where: str,
    to_restore: Wanted = None,
    renames: Mapping[str, str] | None = None,
    strict: bool = True,
) -> str:
    """Put a state back, or those weights of it that are wanted; what did not fit, in words.

    Raises
    ------
    CheckpointError
        It is no checkpoint, or does not fit; nothing has been changed then.
    """
    weights, others = _compared(loop, state, where, to_restore, renames)
    if others and strict:
        raise CheckpointError(
            f"{where} does not fit {type(loop.trainer.model).__name__}: {others}; "
            f"strict=False loads the weights that fit, to_restore= those that are named"
        )
    trainer, saved = loop.trainer, state["trainer"]
    model = laid_out(weights.state, unwrap(trainer.model))
    if to_restore is not None or others:
        trainer.load_weights(model)
        return others
    optimizer = optimizer_laid_out(saved["optimizer"], trainer.optimizer)
    trainer.load_state_dict({**saved, "model": model, "optimizer": optimizer})
    for name, one in loop.objects.items():
        one.load_state_dict(state["objects"][name])
    loop.last_metrics = dict(state["metrics"])
    loop.load_state_dict(state["loops"][own_rank()[0]])
    return ""


def check(loop: Training, state: dict[str, Any], where: str) -> None:
    """Raise CheckpointError for a state that `restore` could not put back, with the differences."""
    found = differences(loop, state, where)
    if found:
        name = type(loop.trainer.model).__name__
        raise CheckpointError(f"{where} does not fit {name}: {found}")


def differences(loop: Training, state: dict[str, Any], where: str) -> str:
    """All that does not fit, in words; empty when it can be put back."""
    return _compared(loop, state, where)[1]


def _compared(
    loop: Training,
    state: dict[str, Any],
    where: str,
    to_restore: Wanted = None,
    renames: Mapping[str, str] | None = None,
) -> tuple[Fitted, str]:
    """Its weights as far as they fit, and all that does not, in words."""
    check_format(state, where)
    own = loop.trainer.state_dict()["model"]
    weights = fitted(state["trainer"]["model"], own, to_restore, renames)
    # Of weights alone, whatever else there is does not matter.
    others = _without_weights(state, loop) if to_restore is None else ""
    return weights, "; ".join(filter(None, (weights.differences, others)))


def check_format(state: dict[str, Any], where: str) -> None:
    """Raise CheckpointError for what is no checkpoint of a loop."""
    if state.get("format") != FORMAT:
        raise CheckpointError(
            f"{where} is no checkpoint of a loop; weights alone go into model.load_state_dict"
        )


def _without_weights(state: dict[str, Any], loop: Training) -> str:
    """All that does not fit but the weights, in words."""
    there, here = state["trainer"], loop.trainer.state_dict()
    said = _parts("parts of the trainer", there, here)
    said += _parts("objects", state["objects"], loop.objects)
    said += optimizer_differences(state, loop)
    n_there, n_here = len(state["loops"]), own_rank()[1]
    if n_there != n_here:
        said.append(f"processes: {n_there} there, {n_here} here")
    return "; ".join(said)


def optimizer_differences(state: dict[str, Any], loop: Training) -> list[str]:
    """Why what an optimizer has kept is none of ours, in words; empty when it may be."""
    of, ours = state.get("optimizer"), _optimizer_named(loop.trainer)
    said = []
    if of is not None and of != ours:  # which would take settings and moments it knows nothing of
        said.append(f"optimizer: {of} there, {ours} here")
    there, here = (
        [len(group["params"]) for group in one["param_groups"]]
        for one in (state["trainer"]["optimizer"], loop.trainer.optimizer.state_dict())
    )
    if there != here:
        said.append(f"parameters of the optimizer's groups: {there} there, {here} here")
    return said


def _optimizer_named(trainer: Trainer) -> str:
    """Whose state it is: of those inside, whatever stands around them."""
    return ", ".join(type(one).__name__ for one in stepped_by(trainer.optimizer))


def _parts(kind: str, there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    missing = ", ".join(name for name in here if name not in there)
    extra = ", ".join(name for name in there if name not in here)
    return [
        *([f"{kind} missing there: {missing}"] if missing else []),
        *([f"{kind} that are not here: {extra}"] if extra else []),
    ]
