"""MindSpore's summary collector and MindInsight's views, for any training.

``SummaryCollector`` collects; ``scalar``, ``tensor``, ``histogram`` and ``image`` are called in a
model; ``show_views`` shows collected values in panels.
"""

from typing import TYPE_CHECKING, Any

from notebook_probe.summary.collector import SummaryCollector
from notebook_probe.summary.tagged import histogram, image, scalar, tensor

if TYPE_CHECKING:
    from notebook_probe.summary.views import show_views

__all__ = ["SummaryCollector", "histogram", "image", "scalar", "show_views", "tensor"]


def __getattr__(name: str) -> Any:
    if name == "show_views":  # which needs Jupyter
        from notebook_probe.summary.views import show_views

        return show_views
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
