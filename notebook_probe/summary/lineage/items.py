"""Lineage items: at the start of a training, after evaluations, and at its end."""

from __future__ import annotations

import os
from collections.abc import Mapping

from notebook_probe.lineage.dataset_graph import DatasetGraph
from notebook_probe.summary.dataset_graph.describe import describe
from notebook_probe.summary.lineage.custom import HYPER_CONFIG, custom_lineage
from notebook_probe.summary.lineage.device import device_lineage
from notebook_probe.summary.lineage.evaluation import eval_lineage, merged_evaluations
from notebook_probe.summary.lineage.sources import training_of_loop, training_of_run
from notebook_probe.summary.lineage.training import train_lineage
from notebook_probe.summary.moment import Item, Moment
from notebook_probe.summary.settings import CollectorSettings
from notebook_probe.train.data.dataset import Dataset

__all__ = ["CustomLineageItem", "EvalLineageItem", "TrainLineageItem"]


class TrainLineageItem(Item):
    """Store the results of the training whenever it ends for now, and its device."""

    name = "collect_train_lineage"

    @classmethod
    def read(cls, settings: CollectorSettings) -> TrainLineageItem | None:
        """Return the item, if it is switched on."""
        return cls() if settings.collects(cls.name) else None

    def end(self, moment: Moment) -> None:
        data = _described(moment.data)
        if moment.loop is not None:
            training = training_of_loop(moment.loop, data)
        else:
            training = training_of_run(moment.run, moment.step, data, moment.model)
        device = device_lineage(moment.model)
        moment.run.controls.keep_lineage(train=train_lineage(training), device=device)


class EvalLineageItem(Item):
    """Store the metrics of evaluations, the newest of each."""

    name = "collect_eval_lineage"

    @classmethod
    def read(cls, settings: CollectorSettings) -> EvalLineageItem | None:
        """Return the item, if it is switched on."""
        return cls() if settings.collects(cls.name) else None

    def evaluated(self, moment: Moment, metrics: Mapping[str, float]) -> None:
        data = None if moment.loop is None else _described(moment.loop.evaluated_data)
        now = eval_lineage(metrics, data, moment.step)
        known = moment.run.lineage().get("eval", {})
        moment.run.controls.keep_lineage(eval=merged_evaluations(known, now))


class CustomLineageItem(Item):
    """Store the user's own lineage, and the environment's, after the first step."""

    name = "custom_lineage_data"

    @classmethod
    def read(cls, settings: CollectorSettings) -> CustomLineageItem | None:
        """Return the item if the user or the environment has given anything."""
        return cls() if settings.custom_lineage_data or HYPER_CONFIG in os.environ else None

    def begin(self, moment: Moment) -> None:
        moment.run.controls.keep_lineage(custom=custom_lineage(moment.settings.custom_lineage_data))


def _described(data: Dataset | None) -> DatasetGraph | None:
    return None if data is None else describe(data.source)
