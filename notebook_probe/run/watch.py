"""Start of watching a model: location of the record, and the earlier run that is replaced."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from os import PathLike
from types import MappingProxyType
from typing import Any, Literal

import torch
from torch import nn
from torch.optim import Optimizer

from notebook_probe.compare.reference import References, opened_references
from notebook_probe.errors import NotApplicableError
from notebook_probe.model.channel_axes import resolve_channel_axes, set_channel_axes
from notebook_probe.model.map import ModelMap
from notebook_probe.model.unwrapped import unwrap
from notebook_probe.probes.step.budget import check_budget
from notebook_probe.quantities import own_name
from notebook_probe.record.format.notes import CONFIG, written_notes
from notebook_probe.record.format.resume import Resume, resume_at
from notebook_probe.record.store.location import Location
from notebook_probe.record.write.flusher import Durability
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.reports import report
from notebook_probe.run.attach.attachment import Attachment
from notebook_probe.run.attach.module_table import (
    OnCompiled,
    check_on_compiled,
    module_table,
)
from notebook_probe.run.attach.preset import Preset
from notebook_probe.run.attach.presets import resolve_presets
from notebook_probe.run.begin.earlier import close_earlier, note, place_for, remove_record
from notebook_probe.run.begin.location import (
    as_location,
    from_here,
    rank_folder,
    record_location,
)
from notebook_probe.run.begin.notified import Addresses, asked_services, notify_by
from notebook_probe.run.begin.provenance import keep_provenance
from notebook_probe.run.begin.ranks import own_rank
from notebook_probe.run.begin.shared import share
from notebook_probe.run.remote_control.sharing import allows_control
from notebook_probe.run.run import Run
from notebook_probe.uncollected import uncollected
from notebook_probe.uninterrupted import uninterrupted

__all__ = ["watch"]


@uncollected
def watch(
    model: nn.Module,
    optimizer: Optimizer | None = None,
    store: Location | PathLike[str] | None = None,
    probes: str | Preset | Sequence[str | Preset] | Mapping[Any, Any] | None = "default",
    name: str | None = None,
    on_compiled: OnCompiled = "inside",
    resume: bool | int | None = None,
    max_bytes: int | None = None,
    keep_bits: Mapping[str, int] = MappingProxyType({}),
    channel_axis: Mapping[Any, int] = MappingProxyType({}),
    rank: int | Literal["auto"] | None = "auto",
    budget: float | None = 5.0,
    overwrite: bool = False,
    config: Mapping[str, Any] | None = None,
    durability: Durability = "kill",
    chunks: Mapping[str, int] | None = None,
    flight: int = 0,
    step: int | None = None,
    branch: bool = False,
    reference: References | None = None,
    control: bool | None = None,
    notify: Addresses | None = None,
) -> Run:
    """Watch a model from now on; the training loop does not have to change.

    A step is one optimizer step, counted by torch's own hooks. Running the cell again closes the
    earlier run of the model, so that runs do not accumulate.

    Parameters
    ----------
    model : nn.Module
        Model to watch, by a weak reference. For a compiled, DDP or DataParallel wrapper, the model
        inside is watched.
    optimizer : Optimizer, optional
        Optimizer of the model. By default it is found by its parameters; a given one must own some
        of the model's.
    store : path, URL, zarr Store, icechunk Repository or RemoteStore, optional
        Folder of the record. None makes a new one under ``runs/``. A record of the same model is
        continued; ``resume`` says where. A model that was rebuilt in this process gets a new record
        next to the previous one, ``first-2.zarr``. ``"s3://bucket/run.zarr"`` and similar are
        written on this machine first and shipped by a thread; see `RemoteStore`.
    probes : str, Preset, sequence of these, dict or None
        Quantities to measure from the first step: a preset or several of ``"default"``,
        ``"gradients"``, ``"activations"``, ``"spectra"``, ``"batchnorm"``, ``"attention"``,
        ``"curvature"``, ``"precision"``, ``"optimizer"``, ``"alerts"``, ``"step"``, ``"system"``
        and ``"everything"``, or a custom one. ``notebook_probe.list_presets()`` shows the
        quantities, places, schedule and cost of each. None measures nothing. Or ``{selection:
        ["Quantity", ["Quantity", "linear(5,0)"]]}``.
    name : str, optional
        Name in the Explorer; by default the model's class.
    on_compiled : "inside", "eager" or "skip"
        Calls of a compiled model run no hooks. ``"inside"`` measures norms, moments and counts in
        its graphs; ``"eager"`` runs only steps uncompiled in which a quantity of calls is due; see
        `Run.on_compiled`.
    resume : bool or int, optional
        Handling of the record at ``store``. None and True continue after the last recorded step;
        for True there must be one, which may be of an earlier model of this process, and for False
        there must not. ``step`` says where it continues, ``branch`` whether rows are removed;
        a number is short for ``step``.
    max_bytes : int, optional
        Size of the record at which recording stops and training continues; ``status().problem``, an
        event and the record's attributes say so. The content of one flush may come on top.
    keep_bits : dict of str to int, optional
        Bits of the mantissa (1 to 22 of 23) that are stored of some quantities, by name:
        ``{"grad_norm": 10}`` halves its size, with a relative error of 0.05 %. The array has the
        attribute ``keep_bits``.
    channel_axis : dict, optional
        Channel axes of modules whose kind does not determine them, by a selection as in
        `Run.attach`: ``{"stages.*.act": -1, "LayerNorm2d": 1}``. By default a Linear or LayerNorm
        has them on the last axis, convolutions on theirs, unknown modules on the last of three
        axes, else on axis 1. If several entries select a module, the last one counts; if several
        calls of ``watch`` do, the last call.
    rank : "auto", int or None
        Rank of this process. In a job of several processes each writes a separate record, without
        communication: ``rank_00003`` in ``store``. None writes ``store`` itself, for a job in which
        one process watches; a number is for processes that torch.distributed does not know.
    overwrite : bool
        Remove the existing record at ``store`` first, even of another model. Only a record on this
        machine that no process writes is ever removed.
    config : dict, optional
        Configuration of the training, such as ``vars(args)``: text, numbers, lists and dicts. It is
        stored in the record, and `Run.config` returns it, next to the state of git and the versions
        of loaded packages. In a continued record the new configuration replaces the old one, which
        an event keeps.
    budget : float or None, optional
        Per cent of step time that watching may cost. The first step is measured in full; then
        presets, and quantities attached without a schedule, are measured at one of 2, 4, 8, ... due
        steps if needed, the most expensive first, and many modules in turns. ``status().budget``
        and an event say so. None measures every due step. See `Run.budget`.
    durability : "kill" or "power loss"
        Failure that the record survives with every row that was flushed: the end of this process by
        any cause, or also a loss of power. The latter waits for the disk at every flush, on a
        separate thread.
    chunks : dict, optional
        Chunks of a new record: rows of a schedule, and modules per file, such as ``{"step": 1000,
        "module": 8}``. Few steps per chunk suit readers of some steps of every module, many steps
        suit readers of whole series; small chunks are many files. By default a chunk has about
        262,000 values, or fewer rows if it would exceed 64 MiB. A continued record keeps its
        chunks.
    flight : int, optional
        Number of last steps of a dense preset to keep in memory. They are written into the record
        only when a rule fires, a value is NaN, the loop raises, or on a call of `Run.flight`; a
        quarter as many of the following steps are written, too. The default preset, and cheap
        quantities of alert rules, are measured at every step, regardless of the budget.
    step : int, optional
        Step to continue at, such as the step of the checkpoint that you have loaded. Values
        recorded at that step and later are removed, except evaluations of the state that the step
        starts with. A new record starts with this step.
    branch : bool
        Remove nothing: `Run.data` shows the new branch, and ``open_run(store, branch=1)`` the old
        one. The record must exist.
    reference : path, pattern, run, or sequence of these, optional
        One to four good runs, such as ``"runs/good-*.zarr"`` or a table of `notebook_probe.runs`.
        The new run is compared with them while it trains, on the writer's thread, and the alert
        ``differs_from_reference`` says where it first differs. See `Run.find_differences`.
    control : bool, optional
        True lets other processes of this user act on the run: the commands ``nbp attach``, ``nbp
        set``, ``nbp pause`` and so on, and the panel of `open_run`. Requests are those of a click,
        over a Unix socket on this machine and through a mailbox in the record; each is an event
        that names the sender. By default only where the environment has
        ``NOTEBOOK_PROBE_CONTROL=1``; without control nothing is started.
    notify : str or sequence of str, optional
        Addresses such as ``"slack://..."`` that get a message about a severe alert, the end and a
        stall; see `notebook_probe.notify`. By default the addresses in ``NOTEBOOK_PROBE_NOTIFY``.

    Returns
    -------
    Run

    Raises
    ------
    ValueError
        For a ``NOTEBOOK_PROBE_CONTROL`` that is neither 1 nor 0; for a negative ``step``; for a
        record to continue, when ``store`` is None; for a ``max_bytes``, ``keep_bits``,
        ``channel_axis``, ``budget``, ``durability``, ``chunks`` or ``flight`` that is not allowed.
    TypeError
        For a ``resume``, ``step`` or ``branch`` of another type; the error names the new spelling.
    RecordMismatchError, RecordLockedError, RecordWriteError, RecordFormatError
        The store holds another model, is in use, or cannot be written; nothing is overwritten.
    NotApplicableError
        The optimizer owns none of the model's parameters; an axis of a parameter.
    UnknownNameError
        A selection of ``channel_axis`` that selects nothing in the model.

    Examples
    --------
    >>> run = watch(model, optimizer, store="runs/first.zarr")  # doctest: +SKIP
    recording to runs/first.zarr
    >>> run = watch(model, optimizer, store="runs/first.zarr", step=1000)  # doctest: +SKIP
    continuing runs/first.zarr at step 1000
    removed 250 steps from step 1000 to 1249, which the record had
    """
    is_shared, services = allows_control(control), asked_services(notify)
    model = unwrap(model)
    model_map = _map_of(model, optimizer)
    _check_options(on_compiled, name, budget, flight)
    noted = None if config is None else written_notes(CONFIG, config)
    continued = _continued(resume_at(resume, step, branch), store, overwrite)
    # What cannot be is refused before a file is made.
    first_probes = Attachment.resolved(partial(resolve_presets, probes=probes), model_map)
    axes = resolve_channel_axes(model_map, channel_axis)
    name = name or type(model).__name__
    number = own_rank() if rank == "auto" else rank
    asked = record_location(store, name, number)
    references = () if reference is None else opened_references(reference, str(asked))
    close_earlier(model, asked, fresh=store is None)
    # An interrupt here leaves no run, so everything that was started for it is ended.
    with ExitStack() as undo:
        with uninterrupted:
            location = _free(model, asked, store, number, continued, overwrite)
            writer = RecordWriter(
                location,
                title=name,
                modules=module_table(model_map),
                attrs=_attrs(model, axes),
                resume=continued,
                max_bytes=max_bytes,
                keep_bits=_by_own_names(keep_bits),
                durability=durability,
                chunks=chunks,
            )
            undo.callback(writer.discard_if_empty if store is None else writer.close)
            keep_provenance(writer)
            if noted is not None:
                _keep_config(writer, noted)
            set_channel_axes(model_map, axes)
            run = Run(
                model=model,
                model_map=model_map,
                writer=writer,
                name=name,
                first_probes=first_probes,
                fresh=store is None,
                on_compiled=on_compiled,
                budget=budget,
                optimizer=optimizer,
                rank=number,
                flight=flight,
                references=references,
            )
            undo.callback(run.close)
            run.controls.options = {
                "name": name,
                "on_compiled": on_compiled,
                "max_bytes": max_bytes,
                "keep_bits": keep_bits,
                "channel_axis": channel_axis,
                "rank": rank,
                "budget": budget,
                "durability": durability,
                "flight": flight,
                "reference": reference,
                "control": control,
                "notify": services,
            }
            run.controls.given_config = json.loads(noted or "{}")
            note(run, model, asked)
            if is_shared:
                share(run, writer, location)
            notify_by(run, services)
            report(_first_line(writer, continued) + _why_there(asked, location))
            if writer.removed:
                report(writer.removed)
        undo.pop_all()
    return run


def _map_of(model: nn.Module, optimizer: Optimizer | None) -> ModelMap:
    """Return the modules and parameters of a model, which an optimizer, if given, trains."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"watch({type(model).__name__}): a torch.nn.Module is expected")
    model_map = ModelMap(model)
    if optimizer is not None:
        _check_owned(model_map, optimizer)
    return model_map


def _check_options(
    on_compiled: OnCompiled, name: str | None, budget: float | None, flight: int
) -> None:
    """Refuse options that are wrong whatever the model and the record are."""
    check_on_compiled(on_compiled)
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name={name!r}; text is expected, or None for the model's class")
    check_budget(budget)
    if not isinstance(flight, int) or isinstance(flight, bool) or flight < 0:
        raise ValueError(f"flight={flight!r}; a number of steps is expected, 0 for none")


def _continued(continued: Resume, store: object, overwrite: bool) -> Resume:
    """Return where a record is continued; refuse what contradicts it."""
    if overwrite and continued.names_a_record:
        raise ValueError(f"overwrite=True and {continued}: one removes what the other keeps")
    if store is None and continued.names_a_record:
        raise ValueError(f"{continued} of which record? give its store")
    return continued


def _free(
    model: nn.Module,
    asked: Location,
    store: Location | PathLike[str] | None,
    number: int | None,
    continued: Resume,
    overwrite: bool,
) -> Location:
    """Return where the record is made: where it was asked for, if no earlier one is kept there."""
    if overwrite:
        remove_record(asked)
    elif store is not None and continued == Resume():
        return place_for(model, as_location(store), rank_folder(number))
    return asked


def _keep_config(writer: RecordWriter, noted: str) -> None:
    """Store a new config; an event has the old one."""
    before = str(writer.attrs.get(CONFIG, noted))
    if before != noted:
        writer.event(writer.first_step, "config", "the config was changed", before)
    writer.annotate(**{CONFIG: noted})


def _why_there(asked: Location, location: Location) -> str:
    """Return why a record is elsewhere than requested; empty if it is not."""
    if location == asked:
        return ""
    return (
        f", as {from_here(str(asked))} is of an earlier model: resume=True continues it, "
        f"overwrite=True replaces it"
    )


def _first_line(writer: RecordWriter, continued: Resume) -> str:
    """Return a line on what is written from which step on."""
    first, place = writer.first_step, from_here(writer.location)
    if not writer.continued or (first == 0 and writer.branch == 1):  # or it has no step
        return f"recording to {place}" + (f" from step {first} on" if first else "")
    where = f"after step {first - 1}" if continued.step is None else f"at step {first}"
    return f"continuing {place} {where}" + (
        f" on branch {writer.branch}" if writer.branch > 1 else ""
    )


def _by_own_names(keep_bits: Mapping[str, int]) -> Mapping[str, int]:
    """Use the recorded names of quantities as keys; the writer refuses anything but a mapping."""
    if not isinstance(keep_bits, Mapping):
        return keep_bits
    return {own_name(quantity): n_bits for quantity, n_bits in keep_bits.items()}


def _check_owned(model_map: ModelMap, optimizer: Optimizer) -> None:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(
            f"watch(..., {type(optimizer).__name__}): a torch.optim.Optimizer is expected"
        )
    own = {id(slot.get()) for slot in model_map.parameters.values()}
    if not any(id(value) in own for group in optimizer.param_groups for value in group["params"]):
        raise NotApplicableError(
            f"{type(optimizer).__name__} owns none of the {len(own)} parameters of "
            f"{model_map.class_name}; give the optimizer that trains it, or leave it out"
        )


def _attrs(model: nn.Module, axes: Mapping[str, int]) -> dict[str, str]:
    own = {"model_class": type(model).__qualname__, "torch_version": torch.__version__}
    return {**own, "channel_axis": json.dumps(axes)} if axes else own
