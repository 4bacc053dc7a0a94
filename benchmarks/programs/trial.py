"""Run a training program as it is, watched or not, and print what became of it.

``python -m benchmarks.programs.trial --backwards 200 [--watch] SCRIPT [argument ...]``, in the
folder that the program expects. Seeds are set before it begins, and it is ended at the first
backward beyond the given number. The last line is JSON: digests of all losses, of the weights,
buffers and optimizer states, and of the random generators; in a watched one the recorded steps and
the rules that fired.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import runpy
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

import notebook_probe as nbp

ALERTS = ["default", "alerts"]


class Enough(BaseException):
    """Ends the program, whose handlers of errors must not see it."""


class Witness:
    """The models and optimizers that a program trains, and the losses of its backwards.

    A model is known, and watched, when an optimizer of its parameters is made, or at the latest
    when a module is called for the first time: a program may update its parameters by itself.
    """

    def __init__(self, backwards: int, watch: bool) -> None:
        self.models: list[nn.Module] = []
        self.optimizers: list[Optimizer] = []
        self.runs: list[nbp.Run] = []
        self.losses: list[float] = []
        self._left = backwards
        self._watch = watch

    def install(self) -> None:
        """Patch what every program calls: modules, optimizers, ``Tensor.backward``."""
        made: list[nn.Module] = []
        build, prepare, backward = nn.Module.__init__, Optimizer.__init__, Tensor.backward

        def built(module: nn.Module, *args: Any, **options: Any) -> None:
            build(module, *args, **options)
            made.append(module)

        def prepared(optimizer: Optimizer, params: Any, *args: Any, **options: Any) -> None:
            prepare(optimizer, params, *args, **options)
            self.optimizers.append(optimizer)
            held = {id(p) for group in optimizer.param_groups for p in group["params"]}
            self.know(_roots(module for module in made if _parameters(module) & held))

        def counted(loss: Tensor, *args: Any, **options: Any) -> None:
            if sys._getframe(1).f_globals["__name__"].startswith("notebook_probe."):
                return backward(loss, *args, **options)  # to learn what watching costs
            if not self._left:
                raise Enough
            self._left -= 1
            self.losses.append(float(loss.detach().sum()))
            return backward(loss, *args, **options)

        def called(module: nn.Module, _: Any) -> None:
            if not self.models and _parameters(module):
                self.know([module])

        nn.Module.__init__, Optimizer.__init__ = built, prepared  # type: ignore[method-assign,assignment]
        Tensor.backward = counted  # type: ignore[method-assign,assignment]
        nn.modules.module.register_module_forward_pre_hook(called)

    def know(self, roots: Iterable[nn.Module]) -> None:
        """Remember models, and watch those that are new."""
        for root in roots:
            if not any(root is known for model in self.models for known in model.modules()):
                self.models.append(root)
                if self._watch:
                    self.runs.append(nbp.watch(root, probes=ALERTS))

    def result(self) -> dict[str, object]:
        """Return the digests, and what the runs recorded."""
        tensors = (
            tensor for model in self.models for _, tensor in sorted(model.state_dict().items())
        )
        states = (
            value
            for optimizer in self.optimizers
            for state in optimizer.state_dict()["state"].values()
            for value in state.values()
        )
        found: dict[str, object] = {
            "losses": _digest(self.losses),
            "weights": _digest(tensors),
            "optimizers": _digest(states),
            "random": _digest(_generators()),
            "backwards": len(self.losses),
        }
        for run in self.runs:
            run.close()
        found["steps"] = [run.status().step for run in self.runs]
        found["alerts"] = sorted({alert.rule for run in self.runs for alert in run.alerts})
        return found


def _generators() -> Iterator[object]:
    yield torch.get_rng_state()
    yield np.random.get_state()[1].tolist()  # type: ignore[index]  # noqa: NPY002
    yield random.getstate()


def _parameters(module: nn.Module) -> set[int]:
    """Return the identities of a module's parameters; none where it is not built yet."""
    return {id(p) for p in module.parameters()} if "_parameters" in module.__dict__ else set()


def _roots(modules: Iterable[nn.Module]) -> Iterator[nn.Module]:
    """Yield the modules that no other one of these contains."""
    candidates = list(modules)
    inside = {id(m) for module in candidates for m in module.modules() if m is not module}
    yield from (module for module in candidates if id(module) not in inside)


def _digest(values: Iterable[object]) -> str:
    total = hashlib.sha256()
    for value in values:
        if isinstance(value, Tensor):
            total.update(
                value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
            )
        else:
            total.update(repr(value).encode())
    return total.hexdigest()[:16]


def main() -> None:
    """Run the program, then print its result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backwards", type=int, required=True)
    parser.add_argument("--watch", action="store_true")
    parser.add_argument("script", type=Path)
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    torch.set_num_threads(1)
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - programs use the shared generators
    torch.manual_seed(0)
    witness = Witness(given.backwards, given.watch)
    witness.install()
    script = given.script.resolve()
    sys.argv = [str(script), *given.arguments]
    sys.path.insert(0, str(script.parent))
    warnings.simplefilter("ignore")  # of the program and of its libraries
    begin = time.process_time()
    with suppress(Enough, SystemExit):
        runpy.run_path(str(script), run_name="__main__")
    seconds = time.process_time() - begin
    print("\n" + json.dumps({**witness.result(), "seconds": round(seconds, 1)}))


if __name__ == "__main__":
    main()
