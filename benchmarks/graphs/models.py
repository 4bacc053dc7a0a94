"""All of the models, by library and name; each builds without a download."""

from __future__ import annotations

from benchmarks.graphs.language import TRANSFORMERS
from benchmarks.graphs.vision import TIMM, TORCHVISION

__all__ = ["MODELS"]

MODELS = {
    (library, name): make
    for library, models in {
        "torchvision": TORCHVISION,
        "timm": TIMM,
        "transformers": TRANSFORMERS,
    }.items()
    for name, make in models.items()
}
