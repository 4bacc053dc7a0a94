"""Contents of a checkpoint, and restoring them."""

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
    "SavedTraining",
    "Stateful",
    "check",
    "check_format",
    "contents",
    "differences",
    "optimizer_differences",
    "restore",
]

FORMAT = "notebook_probe.train 1"


class Stateful(Protocol):
    """An object with a state to continue from."""

    def state_dict(self) -> Any: ...
    def load_state_dict(self, state: Any, /) -> Any: ...


class SavedTraining(Protocol):
    """A training that is saved: a loop.

    `Loop`, which imports this module, is one.
    """

    trainer: Trainer
    last_metrics: dict[str, Any]

    @property
    def objects(self) -> dict[str, Any]: ...
    @property
    def run(self) -> Run | None: ...
    @property
    def n_updates(self) -> int: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...
    def begin_at(self, step: int) -> None: ...
    def state_metrics(self) -> dict[str, float]: ...
    def look_back(self, state: Mapping[str, Any] | None) -> None: ...


def contents(loop: SavedTraining, memory: Memory) -> dict[str, Any]:
    """Copy everything that a training needs to continue as if never stopped, into that memory.

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
        "looking_back": None if run is None or run.closed else run.state_dict(),
        "record": None if run is None else {"location": str(run.location), "step": loop.n_updates},
    }
    # Random generators and positions in the data differ between processes; the rest is the same in
    # all.
    return {**copied(whole, memory), "loops": gathered(copied(loop.state_dict(), memory))}


def restore(
    loop: SavedTraining,
    state: dict[str, Any],
    where: str,
    to_restore: Wanted = None,
    renames: Mapping[str, str] | None = None,
    strict: bool = True,
) -> str:
    """Put a state back, or those weights of it that are wanted; what did not fit, as text.

    Raises
    ------
    CheckpointError
        The file is no checkpoint, or does not fit; nothing has been changed then.
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
    loop.look_back(state.get("looking_back"))
    return ""


def check(loop: SavedTraining, state: dict[str, Any], where: str) -> None:
    """Raise CheckpointError for a state that `restore` could not put back, with the differences."""
    found = differences(loop, state, where)
    if found:
        name = type(loop.trainer.model).__name__
        raise CheckpointError(f"{where} does not fit {name}: {found}")


def differences(loop: SavedTraining, state: dict[str, Any], where: str) -> str:
    """All that does not fit, as text; empty when it can be put back."""
    return _compared(loop, state, where)[1]


def _compared(
    loop: SavedTraining,
    state: dict[str, Any],
    where: str,
    to_restore: Wanted = None,
    renames: Mapping[str, str] | None = None,
) -> tuple[Fitted, str]:
    """Return the fitting weights, and the differences in words."""
    check_format(state, where)
    own = loop.trainer.state_dict()["model"]
    weights = fitted(state["trainer"]["model"], own, to_restore, renames)
    # Of weights alone, whatever else there is does not matter.
    others = _without_weights(state, loop) if to_restore is None else ""
    return weights, "; ".join(filter(None, (weights.differences, others)))


def check_format(state: dict[str, Any], where: str) -> None:
    """Raise CheckpointError unless this is a checkpoint of a loop."""
    if state.get("format") != FORMAT:
        raise CheckpointError(
            f"{where} is no checkpoint of a loop; weights alone go into model.load_state_dict"
        )


def _without_weights(state: dict[str, Any], loop: SavedTraining) -> str:
    """All that does not fit but the weights, as text."""
    there, here = state["trainer"], loop.trainer.state_dict()
    said = _parts("parts of the trainer", there, here)
    said += _parts("objects", state["objects"], loop.objects)
    said += optimizer_differences(state, loop)
    n_there, n_here = len(state["loops"]), own_rank()[1]
    if n_there != n_here:
        said.append(f"processes: {n_there} there, {n_here} here")
    return "; ".join(said)


def optimizer_differences(state: dict[str, Any], loop: SavedTraining) -> list[str]:
    """Return why the optimizer's saved state does not fit ours, as text; empty if it does."""
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
    """Return the names of the optimizers that step, without wrappers."""
    return ", ".join(type(one).__name__ for one in stepped_by(trainer.optimizer))


def _parts(kind: str, there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    missing = ", ".join(name for name in here if name not in there)
    extra = ", ".join(name for name in there if name not in here)
    return [
        *([f"{kind} missing there: {missing}"] if missing else []),
        *([f"{kind} that are not here: {extra}"] if extra else []),
    ]
