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
from notebook_probe.summary.landscape.progress import ProgressLike, telling
from notebook_probe.summary.landscape.recorded import recorded
from notebook_probe.summary.landscape.settings import LandscapeSettings, Method, Normalise
from notebook_probe.summary.landscape.snapshot import Snapshot
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
    """The loss over a plane of parameters, round the way that a training took.

    ``"train"`` is the plane in which the path of an interval of snapshots lies: the first two
    principal directions of their differences from the last one. ``"result"`` is a random plane
    round the last snapshot of all, in units of each filter's own norm.

    A record holds no code: the model and the data are yours. The model is run in evaluation mode
    with other parameters in place of its own; these, its buffers, modes and gradients, and the
    random generators, are left as they were, bit for bit, also after an interrupt. What it will
    take is said first. The result is kept beside the snapshots, where any xarray opens it
    (``xr.open_zarr``); without a model the one that was kept is read.

    Parameters
    ----------
    folder : path, Run or OpenedRun
        The ``summary_dir`` of a `SummaryCollector`, or its ``ckpt_dir``. Of a run or an opened
        record what was drawn while it trained.
    model : nn.Module, optional
        Of the class whose snapshots they are; its own weights do not matter. Not while another
        thread trains it.
    loss_fn : callable, optional
        ``loss_fn(outputs, targets)``, the mean loss as one real number.
    batches : iterable of batches, optional
        ``(inputs, targets)`` or dicts, on the model's device; the first ``max(1, num_samples //
        batch size)`` are copied.
    which : "train" or "result"
    interval : int
        Which one, of those with three snapshots or more.
    landscape_size, num_samples, method, normalise : optional
        Otherwise than the collector was told.
    progress : bool or callable, optional
        A callable is given a `Progress` after each loss; True prints and shows a bar, False is
        silent; by default it prints what it will take, and shows a bar where somebody sees it.
    is_cancelled : callable
        Asked before each loss, such as ``is_set`` of an event that another thread sets: what is
        left stays NaN, and nothing is kept.

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
    if is_whole(found):
        saved(found, stored.folder, name)
    return found


def drawn(
    path: list[Snapshot],
    settings: LandscapeSettings,
    loss: MeanLoss,
    which: Which,
    progress: ProgressLike = None,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> xr.Dataset:
    """The landscape of one path, or round the last snapshot of it."""
    plane = _plane(path, settings, which)
    with telling(progress) as tell:
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


def _plane(path: list[Snapshot], settings: LandscapeSettings, which: Which) -> Plane:
    if which == "train":
        return train_plane(path, settings.landscape_size, settings.method)
    return result_plane(path[-1], settings.landscape_size, settings.normalise)


def name_of(which: Which, path: list[Snapshot]) -> str:
    """What a landscape is called: ``train_1-9``, ``result_19``."""
    first = f"{path[0].number}-" if which == "train" else ""
    return f"{which}_{first}{path[-1].number}"
