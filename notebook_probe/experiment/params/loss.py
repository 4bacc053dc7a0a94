"""What is made small."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from notebook_probe.experiment.params.door import Given

__all__ = ["LossParams"]


def _names(value: Any) -> Any:
    return (
        (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value
    )


class LossParams(Given):
    """``loss_func(outputs, *[inputs[key] for key in pred_targets], **loss_func_kwargs)``.

    Parameters
    ----------
    pred_targets : names
        Keys of the batch.
    loss_func : callable, optional
        By default the cross entropy of each case.
    loss_func_kwargs, agg_func_kwargs : dict
    agg_func : callable or None, optional
        ``agg_func(loss, **agg_func_kwargs)``. Left out, the loss is averaged and the terms that
        the model adds by `add_loss` are added; with None it is the loss as returned.
    """

    deprecated: ClassVar[Mapping[str, str]] = {
        "loss_per_case_func": "loss_func",
        "targets": "pred_targets",
    }

    pred_targets: Annotated[tuple[str, ...], BeforeValidator(_names)] = ("labels",)
    loss_func: Callable[..., Any] | None = None
    loss_func_kwargs: dict[str, Any] = Field(default_factory=dict)
    agg_func: Callable[..., Any] | None = None
    agg_func_kwargs: dict[str, Any] = Field(default_factory=dict)

    @property
    def is_averaged(self) -> bool:
        """Nothing was said of how losses of cases become one."""
        return "agg_func" not in self.model_fields_set
