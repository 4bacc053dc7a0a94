"""``nbp.landscape(folder)``: the loss landscape of a training, from its snapshots."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal, TypeAlias

import xarray as xr
from torch import Tensor, nn

from notebook_probe.errors import near
from notebook_probe.record.format.source import Source
from notebook_probe.summary.landscape.dataset import as_dataset, is_whole, opened, saved
from notebook_probe.summary.landscape.evaluation import evaluate
from notebook_probe.summary.landscape.mean_loss import MeanLoss, kept_batches
from notebook_probe.summary.landscape.planes import Plane, result_plane, train_plane
from notebook_probe.summary.landscape.progress import ProgressLike, reporting
from notebook_probe.summary.landscape.recorded import recorded
from notebook_probe.summary.landscape.settings import LandscapeSettings, Method, Normalise
from notebook_probe.summary.landscape.snapshot import ModelSnapshot
from notebook_probe.summary.landscape.stored import StoredSnapshots

__all__ = ["Which", "drawn", "landscape", "name_of"]

Which: TypeAlias = Literal["train", "result"]
WHICH = ("train", "result")


def landscape(
    folder: str | Path | Source,
    model: nn.Module | None = None,
    loss_fn: Callable[[Any, Any], Tensor] | None = None,
    batches: Iterable[Any] | None = None,
    *,
    which: Which = "train",
    interval: int = -1,
    landscape_size: int | None = None,
    num_samples: int | None = None,
    method: Method | None = None,
    normalise: Normalise | None = None,
    progress: ProgressLike = None,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> xr.Dataset:
    """Return the loss over a plane of parameters, around the path of a training.

    ``"train"`` is the plane of the path through an interval of snapshots: the first two principal
    directions of their differences from the last one. ``"result"`` is a random plane around the
    very last snapshot, in units of each filter's own norm.

    A record contains no code: the model and the data are yours. The model is run in evaluation mode
    with other parameters instead; its own parameters, its buffers, modes and gradients, and the
    random generators, are restored bit for bit, also after an interrupt. The expected time is
    printed first. The result is stored next to the snapshots, where any xarray opens it
    (``xr.open_zarr``); without a model the stored one is read.

    Parameters
    ----------
    folder : path, Run or OpenedRun
        The ``summary_dir`` of a `SummaryCollector`, or its ``ckpt_dir``; or a run or an opened
        record, for the landscape that was computed while it trained.
    model : nn.Module, optional
        Model of the class of the snapshots; its own weights do not matter. It must not be in
        training in another thread.
    loss_fn : callable, optional
        ``loss_fn(outputs, targets)``, the mean loss as one real number.
    batches : iterable of batches, optional
        ``(inputs, targets)`` or dicts, on the model's device; the first ``max(1, num_samples //
        batch size)`` are copied.
    which : "train" or "result"
    interval : int
        Index among the intervals with three snapshots or more.
    landscape_size, num_samples, method, normalise : optional
        Override the collector's settings.
    progress : bool or callable, optional
        A callable gets a `Progress` after each loss; True prints and shows a bar, False is silent;
        by default the estimated time is printed, and a bar is shown if visible.
    is_cancelled : callable
        Called before each loss, such as ``is_set`` of an event that another thread sets: the
        remaining losses stay NaN, and nothing is stored.

    Returns
    -------
    xr.Dataset
        ``loss`` with dims (y, x); for ``"train"`` also ``path_x``, ``path_y`` and ``path_loss``
        with dim ``number``. ``figures.landscape`` draws it.

    Raises
    ------
    CheckpointError
        There are no snapshots, too few, or of another model; without a model, nothing was kept.
    NotLookedError
        Nothing is in the record.
    UnreadableError
        The path is straight or not finite: it has no plane.
    ValueError, TypeError
        For a setting that is not allowed, and where one of model, loss_fn and batches is missing.

    Examples
    --------
    >>> found = nbp.landscape("summary", model, cross_entropy, loader)  # doctest: +SKIP
    train landscape 10-19: 1 of 1611 losses, about 12 s to go
    >>> figures.landscape(found)  # doctest: +SKIP
    """
    if which not in WHICH:
        raise ValueError(f"which={which!r}; {near(which, WHICH)}")
    if not isinstance(folder, str | Path):
        return recorded(folder, which, interval)
    stored = StoredSnapshots.at(folder)
    given = {
        "landscape_size": landscape_size,
        "num_samples": num_samples,
        "method": method,
        "normalise": normalise,
    }
    # What is given now wins over what the snapshots were taken for.
    changed = {name: value for name, value in given.items() if value is not None}
    settings = LandscapeSettings.of({**stored.metadata.settings.as_dict(), **changed})
    path = stored.path(interval) if which == "train" else [stored.last()]
    name = name_of(which, path)
    if model is None and loss_fn is None and batches is None:
        return opened(stored.folder, name)
    if model is None or loss_fn is None or batches is None:
        raise TypeError("landscape needs model, loss_fn and batches: all of them, or none")
    loss = MeanLoss(model, kept_batches(batches, loss_fn, settings.num_samples))
    found = drawn(path, settings, loss, which, progress, is_cancelled)
    # A canceled drawing is returned but not kept as if it were whole.
    if is_whole(found):
        saved(found, stored.folder, name)
    return found


def drawn(
    path: list[ModelSnapshot],
    settings: LandscapeSettings,
    loss: MeanLoss,
    which: Which,
    progress: ProgressLike = None,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> xr.Dataset:
    """Return the landscape of one path, or around its last snapshot."""
    plane = _plane(path, settings, which)
    with reporting(progress) as tell:
        found = evaluate(
            plane,
            loss,
            path if plane.path is not None else (),
            what=name_of(which, path).replace("_", " landscape "),
            tell=tell,
            is_cancelled=is_cancelled,
        )
    how = {"method": settings.method} if which == "train" else {"normalise": settings.normalise}
    return as_dataset(
        plane,
        found,
        which=which,
        **how,
        network=type(loss.model).__name__,
        unit=settings.unit,
        n_batches=len(loss.batches),
    )


def _plane(path: list[ModelSnapshot], settings: LandscapeSettings, which: Which) -> Plane:
    if which == "train":
        return train_plane(path, settings.landscape_size, settings.method)
    return result_plane(path[-1], settings.landscape_size, settings.normalise)


def name_of(which: Which, path: list[ModelSnapshot]) -> str:
    """Return the name of a landscape: ``train_1-9``, ``result_19``."""
    first = f"{path[0].number}-" if which == "train" else ""
    return f"{which}_{first}{path[-1].number}"
