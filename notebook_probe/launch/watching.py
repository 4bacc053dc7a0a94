"""Watch the first model that an optimizer of this process is made for."""

from __future__ import annotations

import json
import os
import sys
import weakref
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from torch import nn
from torch.optim import Optimizer

from notebook_probe.launch.models import parameter_ids, trained_models
from notebook_probe.launch.options import LAUNCH, LaunchOptions
from notebook_probe.model.unwrapped import unwrap
from notebook_probe.record.store.location import local_path
from notebook_probe.run.begin.earlier import give_way, remove_record, run_of
from notebook_probe.run.begin.ranks import own_rank
from notebook_probe.run.run import Run
from notebook_probe.run.watch import watch

__all__ = ["LaunchedWatching", "made"]

MOST_LOOKS = 20
"""Optimizers without a model after which none is looked for: each look visits every object."""


class LaunchedWatching:
    """Watching of one process: the first model of an optimizer, or the first of a class.

    A model that the program watches itself is left to it.
    """

    def __init__(self, options: LaunchOptions) -> None:
        self._options = options
        self._run: Run | None = None
        self._model: weakref.ref[nn.Module] | None = None
        self._n_looks = 0

    def made(self, optimizer: Optimizer) -> bool:
        """Watch the model of a new optimizer if none is watched; return whether others matter."""
        if self._is_of_watched(optimizer):
            return True
        self._n_looks += 1
        models = [*map(unwrap, trained_models(optimizer))]
        if self._model is not None:
            return self._name_others(models) if models else self._n_looks < MOST_LOOKS
        wanted = [one for one in models if self._options.model in ("", type(one).__name__)]
        if not wanted:
            self._say_why_not(models)
            return self._n_looks < MOST_LOOKS
        self._begin(wanted[0])
        return self._name_others([one for one in models if one is not wanted[0]])

    def _is_of_watched(self, optimizer: Optimizer) -> bool:
        model = None if self._model is None else self._model()
        own = parameter_ids(optimizer)
        return model is not None and any(id(value) in own for value in model.parameters())

    def _begin(self, model: nn.Module) -> None:
        self._model = weakref.ref(model)
        theirs = run_of(model)
        if theirs is not None:
            self._keep_theirs(theirs)
            return
        # stdout is the program's: what it writes there may be read by another program.
        told = StringIO()
        control = True if self._options.control == "1" else None
        with redirect_stdout(told):
            self._run = watch(model, control=control, **self._options.of_watch())
        give_way(self._run, self._give_way_to)
        _tell(told.getvalue().strip())
        _note(record=_place_of(self._run))

    def _give_way_to(self, theirs: Run) -> None:
        """End our run: the program watches the model itself."""
        run, self._run = self._run, None
        if run is None:
            return
        is_empty = run.controls.status_head().step == 0
        run.close()
        if is_empty and self._options.store and local_path(run.location) is not None:
            remove_record(run.location)
        _note(given_up=_place_of(run))
        self._keep_theirs(theirs)

    def _keep_theirs(self, theirs: Run) -> None:
        _tell("the program watches its model itself; its run is kept, and options are its own")
        _note(record=_place_of(theirs))

    def _name_others(self, models: list[nn.Module]) -> bool:
        """Say which models are not watched; return whether others matter."""
        if not models:
            return True
        model = None if self._model is None else self._model()
        watched = "the first model" if model is None else type(model).__name__
        names = ", ".join(dict.fromkeys(type(one).__name__ for one in models))
        other = type(models[0]).__name__
        _tell(f"only {watched} is watched; {names} is trained, too: nbp run --model {other} ...")
        return False

    def _say_why_not(self, models: list[nn.Module]) -> None:
        if not models:
            _note(text="an optimizer was made whose parameters are in no module: not watched")
            return
        names = ", ".join(dict.fromkeys(type(one).__name__ for one in models))
        _note(text=f"--model {self._options.model}: {names} is trained, and not watched")


_watching = LaunchedWatching(LaunchOptions.read())


def made(optimizer: Optimizer) -> bool:
    """Handle a new optimizer of this process; return whether the next one matters.

    Nothing that fails here stops the program: a line says why nothing is watched.
    """
    try:
        return _watching.made(optimizer)
    except Exception as error:
        text = f"not watched: {type(error).__name__}: {error}"
        _tell(text)
        _note(text=text)
        return False


def _is_first_rank() -> bool:
    return own_rank() in (None, 0)


def _place_of(run: Run) -> str:
    """Return a location that holds after a change of the working folder."""
    path = local_path(run.location)
    return run.location if path is None else str(Path(path).absolute())


def _tell(text: str) -> None:
    if sys.stderr is not None and _is_first_rank():
        print(f"notebook_probe: {text}", file=sys.stderr, flush=True)


def _note(**note: str) -> None:
    """Add a line to the notes that the first process reports at its end."""
    _, _, place = os.environ.get(LAUNCH, "").partition(":")
    notes = Path(place)
    if notes.is_file() and _is_first_rank():
        with notes.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(note)}\n")
