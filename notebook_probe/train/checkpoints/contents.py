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

__all__ = ["Stateful", "Training", "check", "contents", "restore"]

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
    weights, differences = _compared(loop, state, where, to_restore, renames)
    if differences and strict:
        raise CheckpointError(
            f"{where} does not fit {type(loop.trainer.model).__name__}: {differences}; "
            f"strict=False loads the weights that fit, to_restore= those that are named"
        )
    trainer, saved = loop.trainer, state["trainer"]
    model = laid_out(weights.state, unwrap(trainer.model))
    if to_restore is not None or differences:
        trainer.load_weights(model)
        return differences
    optimizer = optimizer_laid_out(saved["optimizer"], trainer.optimizer)
    trainer.load_state_dict({**saved, "model": model, "optimizer": optimizer})
    for name, one in loop.objects.items():
        one.load_state_dict(state["objects"][name])
    loop.last_metrics = dict(state["metrics"])
    loop.load_state_dict(state["loops"][own_rank()[0]])
    return ""


def check(loop: Training, state: dict[str, Any], where: str) -> None:
    """Raise CheckpointError for a state that `restore` could not put back, with the differences."""
    _, differences = _compared(loop, state, where)
    if differences:
        name = type(loop.trainer.model).__name__
        raise CheckpointError(f"{where} does not fit {name}: {differences}")


def _compared(
    loop: Training,
    state: dict[str, Any],
    where: str,
    to_restore: Wanted = None,
    renames: Mapping[str, str] | None = None,
) -> tuple[Fitted, str]:
    """Its weights as far as they fit, and all that does not, in words."""
    if state.get("format") != FORMAT:
        raise CheckpointError(
            f"{where} is no checkpoint of a loop; weights alone go into model.load_state_dict"
        )
    own = loop.trainer.state_dict()
    weights = fitted(state["trainer"]["model"], own["model"], to_restore, renames)
    return weights, _differences(weights, state, own, loop, to_restore is None)


def _differences(
    weights: Fitted, state: dict[str, Any], own: dict[str, Any], loop: Training, whole: bool
) -> str:
    """All that does not fit; of weights alone, whatever else there is does not matter."""
    said = [weights.differences] if weights.differences else []
    if not whole:
        return "; ".join(said)
    there, here = state["trainer"], own
    said += _parts("parts of the trainer", there, here)
    said += _parts("objects", state["objects"], loop.objects)
    of, ours = state.get("optimizer"), _optimizer_named(loop.trainer)
    if of is not None and of != ours:  # which would take settings and moments it knows nothing of
        said.append(f"optimizer: {of} there, {ours} here")
    groups = [[len(group["params"]) for group in one["optimizer"]["param_groups"]]
              for one in (there, here)]  # fmt: skip
    if groups[0] != groups[1]:
        said.append(f"parameters of the optimizer's groups: {groups[0]} there, {groups[1]} here")
    n_there, n_here = len(state["loops"]), own_rank()[1]
    if n_there != n_here:
        said.append(f"processes: {n_there} there, {n_here} here")
    return "; ".join(said)


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
