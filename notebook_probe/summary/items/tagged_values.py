"""Tagged values of a model, in the record."""

from __future__ import annotations

import re
import warnings
from typing import Any

import torch
from torch import Tensor, nn

from notebook_probe.axis import ARRAYS
from notebook_probe.checks import is_whole
from notebook_probe.errors import ClosedRunError, RecordWarning
from notebook_probe.probes.step.phase import phase_of
from notebook_probe.summary.bins import binned
from notebook_probe.summary.exports import SummaryExports
from notebook_probe.summary.moment import Item, Moment
from notebook_probe.summary.pictures import Pictures
from notebook_probe.summary.pixels import checked
from notebook_probe.summary.settings import CollectorSettings
from notebook_probe.summary.tagged import Kind, listen

__all__ = ["TaggedItem", "Words"]


class Words:
    """Names of arrays for tags: valid for a record, and unique.

    Examples
    --------
    >>> words = Words()
    >>> words.of("conv1/out"), words.of("conv1.out"), words.of("conv1/out"), words.of("1st")
    ('conv1_out', 'conv1_out_2', 'conv1_out', '_1st')
    """

    def __init__(self) -> None:
        self._of: dict[str, str] = {}

    # Remembered, so that a tag keeps its name whatever comes later.
    def of(self, tag: str) -> str:
        if tag not in self._of:
            word = re.sub(r"\W+", "_", tag, flags=re.ASCII).strip("_") or "value"
            word = f"_{word}" if word[0].isdigit() else word
            taken, n = {*self._of.values()}, 1
            while (f"{word}_{n}" if n > 1 else word) in taken:
                n += 1
            self._of[tag] = f"{word}_{n}" if n > 1 else word
        return self._of[tag]


class TaggedItem(Item):
    """Records tagged values of training calls at due steps; the newest, where a tag comes twice.

    Parameters
    ----------
    exports : SummaryExports or None
        Additional files for recorded tensors.
    """

    name = "tagged values"

    def __init__(self, exports: SummaryExports | None = None) -> None:
        super().__init__()
        self._moment: Moment | None = None
        self._exports = exports
        self._words, self._pictures = Words(), Pictures()
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._told: set[tuple[Kind, str]] = set()

    @classmethod
    def read(cls, settings: CollectorSettings) -> TaggedItem:
        """Return the item; it costs nothing without tagged values."""
        exports = settings.tensor_format is not None
        return cls(SummaryExports(settings.summary_dir, settings.num_process) if exports else None)

    def start(self, moment: Moment) -> None:
        self._moment = moment
        listen(self)

    def awaits(self, step: int) -> bool:
        return self._exports is not None

    def stepped(self, moment: Moment) -> None:
        if self._exports is not None:
            self._exports.tell()

    def end(self, moment: Moment) -> None:
        if self._exports is not None:
            self._exports.finish()
            self._exports.tell()

    def remove(self) -> None:
        self._moment = None

    def watches(self, module: nn.Module) -> bool:
        """Return the TagListener's part."""
        return self._moment is not None and self._moment.run.controls.watches(module)

    def tagged(self, kind: Kind, tag: str, value: Any) -> None:
        """Take in a tagged value; see `TagListener`."""
        moment = self._moment
        if moment is None or moment.run.closed or phase_of(moment.model) != "training":
            return
        due = moment.units.due(moment.run.controls.open_step)
        if not (due.tensors if kind == "tensor" else due.data):
            return
        try:
            self._keep(moment, kind, tag, _tensor_of(value))
        except ClosedRunError:  # by another thread, just now
            pass
        except Exception as error:
            self._drop(kind, tag, error)

    def _keep(self, moment: Moment, kind: Kind, tag: str, value: Tensor) -> None:
        if kind == "scalar":
            moment.log({tag: value})
            return
        name = f"{self._words.of(tag)}_{kind}"
        if kind == "histogram":
            moment.log_array(name, binned(value))
        elif kind == "image":
            moment.log_array(name, self._pictures.of(name, checked(value)))
        else:
            self._keep_tensor(moment, tag, name, value)

    def _keep_tensor(self, moment: Moment, tag: str, name: str, value: Tensor) -> None:
        shape = tuple(value.shape) or (1,)
        # Arrays of one name have one shape in the record.
        if self._shapes.setdefault(name, shape) != shape:
            name = ARRAYS.stored(name, shape)
        is_kept = moment.log_array(name, value.reshape(shape))
        unit = moment.units.unit_of(moment.run.controls.open_step)
        if is_kept and self._exports is not None and unit is not None:
            self._exports.write(tag, unit, value)

    def _drop(self, kind: Kind, tag: str, error: Exception) -> None:
        self.dropped[f"{kind}({tag!r})"] += 1
        if (kind, tag) not in self._told:
            self._told.add((kind, tag))
            warnings.warn(f"{kind}({tag!r}) is not recorded: {error}", RecordWarning, stacklevel=5)


def _tensor_of(value: Any) -> Tensor:
    """Return the value as a dense tensor."""
    try:
        # torch refuses such integers, but a number is recorded as a float.
        is_long = is_whole(value) and abs(value) >= 2**63
        found = (
            torch.tensor(float(value), dtype=torch.float64)
            if is_long
            else torch.as_tensor(value).detach()
        )
    except OverflowError:
        raise ValueError("the integer is too large for float64") from None
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"a {type(value).__name__}; allowed: a number or a tensor") from None
    return found if found.layout == torch.strided else found.to_dense()
