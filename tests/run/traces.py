"""What a run may leave behind: hooks and threads."""

from __future__ import annotations

import threading

from torch import nn


def n_hooks(model: nn.Module) -> int:
    return sum(
        len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()
    )


def our_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("notebook")]
