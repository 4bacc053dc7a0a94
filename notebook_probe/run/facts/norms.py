"""Facts about normalization layers whose running statistics follow too slowly, or too fast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from torch import Tensor

from notebook_probe.run.facts.context import FactContext

__all__ = ["NormMomentum"]

RULE = "batchnorm_momentum"
AFTER = 19
"""Steps after which layers are looked at, once."""


class NormMomentum:
    """Facts about the momentum of layers that keep running statistics.

    Parameters
    ----------
    context : FactContext
    """

    def __init__(self, context: FactContext) -> None:
        self._modules = context.modules
        self._findings, self._later = context.findings, context.later
        self._first_step: int | None = None
        self._is_over = False

    def look(self, step: int) -> None:
        """Look at the layers some steps after the first."""
        self._first_step = step if self._first_step is None else self._first_step
        if self._is_over or step - self._first_step < AFTER:
            return
        self._is_over = True
        slow, fast = (self._findings.threshold(RULE, one) for one in ("slow", "fast"))
        of_slow: dict[str, tuple[float, Tensor]] = {}
        for path, module in self._modules().items():
            count = getattr(module, "num_batches_tracked", None)
            momentum = getattr(module, "momentum", None)
            if not module.training or not isinstance(count, Tensor) or momentum is None:
                continue
            if momentum < slow:
                of_slow[path] = momentum, count
            elif fast < momentum < 1:
                why = (
                    "the running statistics are nearly those of the last batch; this is the weight "
                    "of the new batch, where other frameworks write the weight of the old ones"
                )
                words = {"momentum": f"{momentum:g}", "why": why}
                self._findings.say(RULE, step, [path], severity="remark", words=words)
        if of_slow and len({count.device for _, count in of_slow.values()}) == 1:
            momenta = {path: momentum for path, (momentum, _) in of_slow.items()}
            counts = [count for _, count in of_slow.values()]
            self._later.read(counts, partial(self._judge_slow, step, momenta))

    def _judge_slow(self, step: int, momenta: Mapping[str, float], counts: Sequence[Any]) -> None:
        """Report layers whose statistics are still their initial values."""
        shares = {
            path: (1 - momentum) ** count
            for (path, momentum), count in zip(momenta.items(), counts, strict=True)
        }
        paths = [path for path, share in shares.items() if share > 0.8]
        if paths:
            momentum, share = momenta[paths[0]], shares[paths[0]]
            why = (
                f"after these steps {share:.0%} of the running statistics are their initial 0 and "
                f"1, so that evaluations see other numbers than training for about "
                f"{round(1 / momentum)} batches"
            )
            words = {"momentum": f"{momentum:g}", "why": why}
            self._findings.say(RULE, step, paths, words=words)
