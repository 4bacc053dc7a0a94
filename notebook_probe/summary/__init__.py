"""What MindSpore's summary collector and MindInsight show, of any training.

``SummaryCollector`` collects; ``scalar``, ``tensor``, ``histogram`` and ``image`` are called in a
model.
"""

from notebook_probe.summary.collector import SummaryCollector
from notebook_probe.summary.tagged import histogram, image, scalar, tensor

__all__ = ["SummaryCollector", "histogram", "image", "scalar", "tensor"]
