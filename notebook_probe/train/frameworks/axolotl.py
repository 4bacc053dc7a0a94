"""axolotl: ``plugins: [notebook_probe.train.frameworks.axolotl.WatchPlugin]`` in its YAML file."""

from __future__ import annotations

from typing import Any

from notebook_probe.train.frameworks.needs import needs
from notebook_probe.train.frameworks.transformers import ReportCallback

with needs("axolotl"):
    from axolotl.integrations.base import BasePlugin

__all__ = ["WatchPlugin"]


class WatchPlugin(BasePlugin):
    """Records a training of axolotl, as ``report_to="notebook_probe"`` does one of the Trainer.

    A run that watches the model already, such as that of ``nbp run``, is the one that records; else
    one begins in a new folder below ``runs/``. The contents of the YAML file are in ``run.config``
    below ``axolotl``, without tokens.

    Examples
    --------
    >>> manager = PluginManager.get_instance()  # doctest: +SKIP
    >>> manager.register("notebook_probe.train.frameworks.axolotl.WatchPlugin")  # doctest: +SKIP
    """

    def add_callbacks_post_trainer(self, cfg: Any, trainer: Any) -> list[ReportCallback]:
        """Return the callback that records, for the trainer that axolotl has made."""
        callbacks = trainer.callback_handler.callbacks
        if any(isinstance(one, ReportCallback) for one in callbacks):  # of report_to
            return []
        settings = cfg.to_dict() if hasattr(cfg, "to_dict") else dict(cfg)
        return [ReportCallback({"axolotl": settings})]
