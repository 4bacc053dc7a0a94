"""Configurations of many trainings: listed, run on this machine, continued, shown in a table.

::

    space ─▶ configurations ─▶ processes, one each ─▶ outcomes in a folder ─▶ a table
                 └─▶ optuna.py, ray.py: handed on to who schedules over many machines

It does not depend on the training: a function gets one configuration. Needs no torch.
"""

from notebook_probe.experiment.sweep.configuration import Configuration
from notebook_probe.experiment.sweep.space import choice, integers, log_uniform, uniform
from notebook_probe.experiment.sweep.sweeps import Sweep, sweep

__all__ = ["Configuration", "Sweep", "choice", "integers", "log_uniform", "sweep", "uniform"]
