"""Training loops that record themselves: data, trainer, loop and callbacks.

Nothing here is needed to watch a model: your own loop does not change.
"""

from notebook_probe.train.checkpoints.callback import Checkpoints
from notebook_probe.train.checkpoints.index import Checkpoint
from notebook_probe.train.collector.optimizer_series import (
    OPTIMIZER_GLOBAL_STEP,
    OPTIMIZER_GRADS_L2_COLLECTOR,
    OPTIMIZER_GRADS_L2NORM,
    TRAINER_LOG_STEP_SIZE_L2_COLLECTOR,
    TRAINER_LOG_STEP_SIZE_L2NORM,
)
from notebook_probe.train.data.batch import Batch
from notebook_probe.train.data.dataset import DataError, Dataset
from notebook_probe.train.loop.loop import Loop
from notebook_probe.train.trainer.losses import add_loss, get_losses
from notebook_probe.train.trainer.trainer import Trainer

__all__ = [
    "OPTIMIZER_GLOBAL_STEP",
    "OPTIMIZER_GRADS_L2NORM",
    "OPTIMIZER_GRADS_L2_COLLECTOR",
    "TRAINER_LOG_STEP_SIZE_L2NORM",
    "TRAINER_LOG_STEP_SIZE_L2_COLLECTOR",
    "Batch",
    "Checkpoint",
    "Checkpoints",
    "DataError",
    "Dataset",
    "Loop",
    "Trainer",
    "add_loss",
    "get_losses",
]
