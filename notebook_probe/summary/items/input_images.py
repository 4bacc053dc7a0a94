"""The images that a model is trained on, as it gets them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from notebook_probe.probes.step.hooks import UncopiedHandle, WeakHook
from notebook_probe.probes.step.phase import is_traced, phase_of
from notebook_probe.run.run import Run
from notebook_probe.summary.moment import Item, Moment
from notebook_probe.summary.pictures import Pictures
from notebook_probe.summary.settings import Settings

__all__ = ["InputImageItem", "images_of"]

NAME = "input_image"


class InputImageItem(Item):
    """Keeps the first batch of a due step as one picture, ``input_image`` in the record."""

    name = "collect_input_data"

    def __init__(self) -> None:
        super().__init__()
        self._moment: Moment | None = None
        self._run: Run | None = None
        self._hook: UncopiedHandle | None = None
        self._pictures = Pictures()
        self._last_step = -1

    @classmethod
    def read(cls, settings: Settings) -> InputImageItem | None:
        """The item, where it is wanted."""
        return cls() if settings.collects(cls.name) else None

    def start(self, moment: Moment) -> None:
        self._moment, self._last_step = moment, -1
        if self._run is not moment.run:
            self.remove()
            self._run = moment.run
            self._hook = UncopiedHandle(moment.model.register_forward_pre_hook(_Enter(self)))

    def remove(self) -> None:
        if self._hook is not None:
            self._hook.remove()
            self._hook = None

    def called(self, model: nn.Module, args: tuple[Any, ...]) -> None:
        """A call of the model begins; its first one of a due step is the batch that is kept."""
        moment = self._moment
        if self.is_off or moment is None or moment.run.closed or phase_of(model) != "training":
            return
        step = moment.run.open_step
        if step == self._last_step or not moment.units.due(step).data:
            return
        self._last_step = step
        self.attempt(lambda: self._keep(moment, args))

    def _keep(self, moment: Moment, args: tuple[Any, ...]) -> None:
        images = images_of(args)
        if images.shape[1] not in (1, 3):
            self.dropped[f"batches of {images.shape[1]} channels"] += 1
            return
        moment.log_array(NAME, self._pictures.of(NAME, images))


def images_of(args: tuple[Any, ...]) -> Tensor:
    """The first tensor that a model is called with.

    Raises
    ------
    ValueError
        It is none, or not of four dimensions: images, channels, height, width.

    Examples
    --------
    >>> images_of(([torch.zeros(2, 3, 8, 8), "mask"], 0.5)).shape
    torch.Size([2, 3, 8, 8])
    """
    first: Any = args[0] if args else None
    if isinstance(first, list | tuple) and first:
        first = first[0]
    allowed = "images are a tensor (n, channels, height, width)"
    if not isinstance(first, Tensor):
        raise ValueError(f"a batch of {type(first).__name__} has no images; {allowed}")
    if first.ndim != 4 or not first.numel():
        raise ValueError(f"a batch of shape {tuple(first.shape)} has no images; {allowed}")
    return first.detach()


class _Enter(WeakHook):
    __slots__ = ()

    def __call__(self, module: nn.Module, args: Any) -> None:
        if torch.compiler.is_compiling() or (item := self.owner()) is None or is_traced():
            return
        item.called(module, args)
