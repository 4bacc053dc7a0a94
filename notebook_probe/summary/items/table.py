"""Table of all items of a collector; another item needs its reader here."""

from __future__ import annotations

from collections.abc import Callable

from notebook_probe.summary.dataset_graph.item import DatasetGraphItem
from notebook_probe.summary.items.graph import GraphItem
from notebook_probe.summary.items.histograms import HistogramItem
from notebook_probe.summary.items.input_images import InputImageItem
from notebook_probe.summary.items.metric import MetricItem
from notebook_probe.summary.items.tagged_values import TaggedItem
from notebook_probe.summary.landscape.item import LandscapeItem
from notebook_probe.summary.lineage.items import (
    CustomLineageItem,
    EvalLineageItem,
    TrainLineageItem,
)
from notebook_probe.summary.moment import Item
from notebook_probe.summary.settings import CollectorSettings

__all__ = ["ITEMS"]

ITEMS: tuple[Callable[[CollectorSettings], Item | None], ...] = (
    MetricItem.read,
    GraphItem.read,
    HistogramItem.read,
    InputImageItem.read,
    TaggedItem.read,
    DatasetGraphItem.read,
    CustomLineageItem.read,
    EvalLineageItem.read,
    TrainLineageItem.read,
    LandscapeItem.read,
)
"""Readers of the settings, each of which returns its item, or None if it is off."""
