"""The images that a model is trained on, as it gets them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from notebook_probe.probes.step.hooks import UncopiedHandle, WeakHook
from notebook_probe.probes.step.phase import is_traced, phase_of
from notebook_probe.run.run import Run
from notebook_probe.summary.moment import Item, Moment
from notebook_probe.summary.pictures import Pictures
from notebook_probe.summary.settings import CollectorSettings

__all__ = ["InputImageItem", "images_of"]

NAME = "input_image"


class InputImageItem(Item):
    """Store the first batch of a due step as one picture, ``input_image`` in the record."""

    name = "collect_input_data"

    def __init__(self) -> None:
        super().__init__()
        self._moment: Moment | None = None
        self._run: Run | None = None
        self._hook: UncopiedHandle | None = None
        self._pictures = Pictures()
        self._last_step = -1
        self._is_called = False

    @classmethod
    def read(cls, settings: CollectorSettings) -> InputImageItem | None:
        """Return the item, if it is switched on."""
        return cls() if settings.collects(cls.name) else None

    def start(self, moment: Moment) -> None:
        self._moment, self._last_step = moment, -1
        if self._run is not moment.run:
            self.remove()
            self._run = moment.run
            hook = moment.model.register_forward_pre_hook(_InputHook(self), with_kwargs=True)
            self._hook, self._is_called = UncopiedHandle(hook), False

    def end(self, moment: Moment) -> None:
        """Report a training in which the model itself was never called when images were due.

        Raises
        ------
        ValueError
        """
        if self._moment is not None and moment.step > self._moment.step and not self._is_called:
            raise ValueError(
                f"{type(moment.model).__name__} itself was not called in training; where only its "
                f"parts are, or it is compiled, its images are not seen"
            )

    def remove(self) -> None:
        if self._hook is not None:
            self._hook.remove()
            self._hook = None

    def called(self, model: nn.Module, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> None:
        """Keep the batch of the first call in a due step."""
        moment = self._moment
        if self.is_off or moment is None or moment.run.closed or phase_of(model) != "training":
            return
        self._is_called = True
        step = moment.run.controls.open_step
        if step == self._last_step or not moment.units.due(step).data:
            return
        self._last_step = step
        self.attempt(lambda: self._keep(moment, images_of(args, keywords)))

    def _keep(self, moment: Moment, images: Tensor) -> None:
        if not images.numel():
            self.dropped["batches without a pixel"] += 1
        elif images.shape[1] not in (1, 3):
            self.dropped[f"batches of {images.shape[1]} channels"] += 1
        else:
            moment.log_array(NAME, self._pictures.of(NAME, images))


def images_of(args: tuple[Any, ...], keywords: Mapping[str, Any] = MappingProxyType({})) -> Tensor:
    """Return the first tensor argument; among keywords, the first with four dimensions.

    Raises
    ------
    ValueError
        It is none, or not of four dimensions: images, channels, height, width.

    Examples
    --------
    >>> images_of(([torch.zeros(2, 3, 8, 8), "mask"], 0.5)).shape
    torch.Size([2, 3, 8, 8])
    >>> images_of((), {"labels": torch.zeros(2), "pixel_values": torch.zeros(2, 3, 8, 8)}).shape
    torch.Size([2, 3, 8, 8])
    """
    allowed = "images are a tensor (n, channels, height, width)"
    if not args:
        named = (one for one in keywords.values() if isinstance(one, Tensor) and one.ndim == 4)
        found = next(named, None)
        if found is None:
            raise ValueError(
                f"a batch of {', '.join(keywords) or 'nothing'} has no images; {allowed}"
            )
        return found.detach()
    first: Any = args[0]
    if isinstance(first, list | tuple) and first:
        first = first[0]
    if not isinstance(first, Tensor):
        raise ValueError(f"a batch of {type(first).__name__} has no images; {allowed}")
    if first.ndim != 4:
        raise ValueError(f"a batch of shape {tuple(first.shape)} has no images; {allowed}")
    return first.detach()


class _InputHook(WeakHook):
    __slots__ = ()

    def __call__(self, module: nn.Module, args: Any, keywords: Any) -> None:
        # While a model is compiled, exported or traced, there are no values.
        if torch.compiler.is_compiling() or (item := self.owner()) is None or is_traced():
            return
        item.called(module, args, keywords)
