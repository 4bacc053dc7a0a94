"""Look inside a neural network while it trains, in the notebook where you already work.

>>> import notebook_probe as nbp
>>> run = nbp.watch(model, optimizer)  # doctest: +SKIP
>>> run.explore()                      # doctest: +SKIP

Modules are loaded when first used: reading a record needs neither torch nor Jupyter.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from notebook_probe.axis import IMAGE, PER_CHANNEL, Axis
from notebook_probe.errors import (
    BreakpointError,
    CatalogueError,
    CheckpointError,
    ClosedRunError,
    DuplicateNameError,
    HiLossError,
    HookError,
    InfLossError,
    InterferenceError,
    MissingExtraError,
    NanLossError,
    NoChangeError,
    NoGraphError,
    NonFiniteError,
    NonFiniteGradientError,
    NotApplicableError,
    NotLookedError,
    ParamError,
    ProbeError,
    QuantityError,
    QueryError,
    RecordFormatError,
    RecordLockedError,
    RecordMismatchError,
    RecordWarning,
    RecordWriteError,
    RegistryWarning,
    ReplacedWarning,
    ReplayWarning,
    RuleError,
    ScheduleError,
    SettingError,
    StoreSilentError,
    TrainingError,
    TrainingStopped,
    UnknownNameError,
    UnreadableError,
    ViewError,
    near,
)
from notebook_probe.schedules import (
    Every,
    Geometric,
    KeepN,
    Seconds,
    Steps,
    Times,
    between,
    include_first,
    include_last,
)

if TYPE_CHECKING:
    from notebook_probe import summary, train
    from notebook_probe.alerts import Alert, Alerts, Rule, rule
    from notebook_probe.catalogues import Catalogue, Runs, catalogue, runs
    from notebook_probe.examine import Examination
    from notebook_probe.experiment.optimizers import ClipOptimizer, MinibatchOptimizer
    from notebook_probe.experiment.sweep import sweep
    from notebook_probe.experiment.testing import test_from_params
    from notebook_probe.experiment.training import train_from_params
    from notebook_probe.explorer.draw.view import view
    from notebook_probe.explorer.live_widgets import live
    from notebook_probe.graph import Graph
    from notebook_probe.opened import OpenedJob, OpenedRun, OpenedRuns, open_run, open_runs
    from notebook_probe.probes.calls.collect import collect
    from notebook_probe.quantities import (
        Quantity,
        cov_eigs,
        covariance,
        quantity,
        reduction,
        window_quantity,
    )
    from notebook_probe.quantities.table import list_quantities
    from notebook_probe.record.store.location import RemoteStore
    from notebook_probe.run.attach.preset import Preset, PresetRow
    from notebook_probe.run.attach.preset_table import list_presets
    from notebook_probe.run.begin.notified import notify
    from notebook_probe.run.begin.printed import keep_output
    from notebook_probe.run.handle import Handle
    from notebook_probe.run.run import Run
    from notebook_probe.run.watch import watch
    from notebook_probe.summary.collector import SummaryCollector
    from notebook_probe.summary.landscape.draw import landscape
    from notebook_probe.train.collector.data_collector import DataCollector
    from notebook_probe.train.collector.optimizer_series import OptimizerSeries
    from notebook_probe.train.collector.step_function import StepFunction
    from notebook_probe.train.recompute import recompute

__version__ = "0.2.0"

__all__ = [
    "IMAGE",
    "PER_CHANNEL",
    "Alert",
    "Alerts",
    "Axis",
    "BreakpointError",
    "Catalogue",
    "CatalogueError",
    "CheckpointError",
    "ClipOptimizer",
    "ClosedRunError",
    "DataCollector",
    "DuplicateNameError",
    "Every",
    "Examination",
    "Geometric",
    "Graph",
    "Handle",
    "HiLossError",
    "HookError",
    "InfLossError",
    "InterferenceError",
    "KeepN",
    "MinibatchOptimizer",
    "MissingExtraError",
    "NanLossError",
    "NoChangeError",
    "NoGraphError",
    "NonFiniteError",
    "NonFiniteGradientError",
    "NotApplicableError",
    "NotLookedError",
    "OpenedJob",
    "OpenedRun",
    "OpenedRuns",
    "OptimizerSeries",
    "ParamError",
    "Preset",
    "PresetRow",
    "ProbeError",
    "Quantity",
    "QuantityError",
    "QueryError",
    "RecordFormatError",
    "RecordLockedError",
    "RecordMismatchError",
    "RecordWarning",
    "RecordWriteError",
    "RegistryWarning",
    "RemoteStore",
    "ReplacedWarning",
    "ReplayWarning",
    "Rule",
    "RuleError",
    "Run",
    "Runs",
    "ScheduleError",
    "Seconds",
    "SettingError",
    "StepFunction",
    "Steps",
    "StoreSilentError",
    "SummaryCollector",
    "Times",
    "TrainingError",
    "TrainingStopped",
    "UnknownNameError",
    "UnreadableError",
    "ViewError",
    "between",
    "catalogue",
    "collect",
    "cov_eigs",
    "covariance",
    "include_first",
    "include_last",
    "keep_output",
    "landscape",
    "list_presets",
    "list_quantities",
    "live",
    "notify",
    "open_run",
    "open_runs",
    "quantity",
    "recompute",
    "reduction",
    "rule",
    "runs",
    "summary",
    "sweep",
    "test_from_params",
    "train",
    "train_from_params",
    "view",
    "watch",
    "window_quantity",
]

_ON_FIRST_USE = {
    "Alert": "notebook_probe.alerts",
    "Alerts": "notebook_probe.alerts",
    "Catalogue": "notebook_probe.catalogues",
    "ClipOptimizer": "notebook_probe.experiment.optimizers",
    "DataCollector": "notebook_probe.train.collector.data_collector",
    "Examination": "notebook_probe.examine",
    "Graph": "notebook_probe.graph",
    "Handle": "notebook_probe.run.handle",
    "MinibatchOptimizer": "notebook_probe.experiment.optimizers",
    "OpenedJob": "notebook_probe.opened",
    "OpenedRun": "notebook_probe.opened",
    "OpenedRuns": "notebook_probe.opened",
    "OptimizerSeries": "notebook_probe.train.collector.optimizer_series",
    "Preset": "notebook_probe.run.attach.preset",
    "PresetRow": "notebook_probe.run.attach.preset",
    "Quantity": "notebook_probe.quantities",
    "RemoteStore": "notebook_probe.record.store.location",
    "Rule": "notebook_probe.alerts",
    "Run": "notebook_probe.run.run",
    "Runs": "notebook_probe.catalogues",
    "SummaryCollector": "notebook_probe.summary.collector",
    "StepFunction": "notebook_probe.train.collector.step_function",
    "catalogue": "notebook_probe.catalogues",
    "collect": "notebook_probe.probes.calls.collect",
    "cov_eigs": "notebook_probe.quantities",
    "covariance": "notebook_probe.quantities",
    "keep_output": "notebook_probe.run.begin.printed",
    "landscape": "notebook_probe.summary.landscape.draw",
    "live": "notebook_probe.explorer.live_widgets",
    "list_presets": "notebook_probe.run.attach.preset_table",
    "list_quantities": "notebook_probe.quantities.table",
    "notify": "notebook_probe.run.begin.notified",
    "open_run": "notebook_probe.opened",
    "open_runs": "notebook_probe.opened",
    "quantity": "notebook_probe.quantities",
    "test_from_params": "notebook_probe.experiment.testing",
    "train_from_params": "notebook_probe.experiment.training",
    "recompute": "notebook_probe.train.recompute",
    "reduction": "notebook_probe.quantities",
    "rule": "notebook_probe.alerts",
    "runs": "notebook_probe.catalogues",
    "sweep": "notebook_probe.experiment.sweep",
    "view": "notebook_probe.explorer.draw.view",
    "watch": "notebook_probe.run.watch",
    "window_quantity": "notebook_probe.quantities",
}

_ROOMS = ("summary", "train")


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    if name.startswith("_"):  # asked for by doctest and inspect, thousands of times; by no person
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        home = _ON_FIRST_USE[name]
    except KeyError:
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}; {near(name, __all__)}"
        ) from None
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return __all__
