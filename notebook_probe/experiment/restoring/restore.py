"""Loading of a checkpoint, whole or in part."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from notebook_probe.experiment.params.sections import LoadParams
from notebook_probe.experiment.places import ExperimentFolder
from notebook_probe.experiment.restoring.found import OWN, Found, find
from notebook_probe.experiment.saving.units import checkpoints, read_config, read_units
from notebook_probe.record.read.ranks import rank_name
from notebook_probe.record.store.location import ROOT_KEY
from notebook_probe.run.begin.ranks import own_rank
from notebook_probe.train.checkpoints.contents import differences
from notebook_probe.train.checkpoints.partly import restore_partly
from notebook_probe.train.checkpoints.places import DamagedError, place_at, read_state
from notebook_probe.train.loop.loop import Loop

__all__ = ["Restored", "restore"]

Wanted: TypeAlias = (
    "Collection[str] | re.Pattern[str] | Callable[[list[str]], Collection[str]] | None"
)


@dataclass(frozen=True, slots=True)
class Restored:
    """Result of loading.

    Attributes
    ----------
    rule : int
        By which rule: 1 nothing is wanted, 2 the own place, 3 a file, 4 another place, 5 fresh.
    step : int
        Updates that are counted as done.
    path : str
        Path of the checkpoint; empty without one.
    left : str
        Text that lists what begins fresh.
    record_id : str
        Id of the unit that was loaded; empty if no experiment is known.
    config : dict
        The parameters of its experiment.
    resume : dict
        Arguments of `notebook_probe.watch` by which the record of the own place continues, or a new
        one begins, at `step`, so that its steps are those of units.
    """

    rule: int
    step: int = 0
    path: str = ""
    left: str = ""
    record_id: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    resume: Mapping[str, Any] = field(default_factory=dict)

    @property
    def was_loaded(self) -> bool:
        """True if a checkpoint was loaded."""
        return bool(self.path)


def restore(
    loop: Loop, place: ExperimentFolder, load: LoadParams | None, *, is_saving: bool
) -> Restored:
    """Load by the first rule that applies, before the loop runs.

    1. ``do_restore=False``: nothing. 2. The place has a checkpoint: the one saved last, whole. 3.
    ``from_ckpt``: that file. 4. Another place is named: the newest there that ``query`` means. 5.
    Nothing.

    By rule 2 a training continues as if it had never stopped; ``strict=False`` takes what fits;
    what is damaged is left for the one saved before it, unless ``fall_back`` is False. By rules 3
    and 4 it takes weights, those of ``to_restore`` under the names of ``load_param_dict``, with
    ``restore_global_step`` the number of updates, and what the optimizer has kept where all fits;
    data and generators are those of the new training.

    Parameters
    ----------
    is_saving : bool
        The place is one that ``save_params`` name.

    Raises
    ------
    FileNotFoundError
        The named checkpoint does not exist.
    ValueError
        A pointless load; a name that nobody knows; a query that is none.
    CheckpointError
        The checkpoint cannot be read, or does not fit; nothing has been changed then.

    Warns
    -----
    UserWarning
        The one saved last is damaged; names the one that is used instead.
    """
    found = find(place, load, is_saving=is_saving)
    if found.rule == OWN:
        found, left = _load_own(loop, place, found, load)
    else:
        left = _load(loop, found, load) if found.path else ""
    step = loop.n_updates
    if left:
        print(f"of {found.path} not all is taken: {left}")
    return Restored(
        rule=found.rule,
        step=step,
        path=found.path,
        left=left,
        record_id=_record_id(found),
        config={} if found.place is None else read_config(found.place),
        resume=_resume(place, found.rule, step) if is_saving else {},
    )


def _load(loop: Loop, found: Found, load: LoadParams | None) -> str:
    state = _state(found.path)
    names = list(state.get("trainer", {}).get("model", ()))
    return restore_partly(
        loop,
        state,
        found.path,
        None if load is None else _named(load.to_restore, names),
        None if load is None else load.load_param_dict,
        strict=load is None or load.strict,
        step=load is None or load.restore_global_step,
    )


def _load_own(
    loop: Loop, place: ExperimentFolder, newest: Found, load: LoadParams | None
) -> tuple[Found, str]:
    """Load the newest checkpoint of the place, or the previous one if it is damaged."""
    for folder in (place.checkpoints, place.recent):
        loop.kept.store(folder)  # each leaves what was saved later
    strict = load is None or load.strict
    try:
        return newest, _load_whole(loop, newest.path, strict)
    except DamagedError as error:
        before = [one.path for one in checkpoints(place)][-2::-1]
        # From the last but one backwards.
        for path in before if load is None or load.fall_back else ():
            with suppress(DamagedError):
                left = _load_whole(loop, path, strict)
                text = f"{error}; training continues from {path}, which was saved before it"
                warnings.warn(text, stacklevel=5)
                return replace(newest, path=path), left
        raise


def _load_whole(loop: Loop, path: str, strict: bool) -> str:
    if not strict:
        state = _state(path)
        if differences(loop, state, path):
            return restore_partly(loop, state, path, strict=False)
    loop.load_checkpoint(path)
    return ""


def _state(path: str) -> dict[str, Any]:
    folder, _, name = path.rpartition("/")
    place = place_at(folder or ".")
    if name not in place.names():
        raise FileNotFoundError(f"{path}: there is no such file")
    return read_state(place, name)


def _named(wanted: Wanted, names: list[str]) -> Collection[str] | re.Pattern[str] | None:
    """Return the names that a function chooses; anything else unchanged."""
    if isinstance(wanted, re.Pattern) or not callable(wanted):
        return wanted
    return list(wanted(names))


def _record_id(found: Found) -> str:
    if found.place is None:
        return ""
    units = read_units(found.place)
    return next((one.id for one in units if one.checkpoint == found.path), "")


def _resume(place: ExperimentFolder, rule: int, step: int) -> Mapping[str, Any]:
    """Return how the record continues; a new training leaves existing rows as a branch.

    A new record begins at the restored step, which may be that of another experiment.
    """
    rank = own_rank()
    own = place.record if rank is None else place.record / rank_name(rank)
    if not (own / ROOT_KEY).exists():
        return {"step": step} if step else {}
    return {"step": step, "branch": rule != OWN}
