"""A pole on a cart, and what learns to hold it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import Optimizer

__all__ = ["ClippedPolicy", "Reinforce", "episodes"]

LONGEST = 60


class _Cart:
    """The equations of Barto, Sutton and Anderson (1983), by Euler's steps of 0.02 s."""

    def __init__(self, drawn: torch.Generator) -> None:
        self.state = [0.1 * x - 0.05 for x in torch.rand(4, generator=drawn).tolist()]

    def push(self, right: bool) -> bool:
        """Whether the pole still stands."""
        x, v, angle, spin = self.state
        sin, cos = math.sin(angle), math.cos(angle)
        force = ((10.0 if right else -10.0) + 0.05 * spin**2 * sin) / 1.1
        turned = (9.8 * sin - cos * force) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        moved = force - 0.05 * turned * cos / 1.1
        self.state = [x + 0.02 * v, v + 0.02 * moved, angle + 0.02 * spin, spin + 0.02 * turned]
        return abs(self.state[0]) < 2.4 and abs(self.state[2]) < 0.21


def episodes(seed: int) -> Iterator[torch.Generator]:
    """What a step draws from."""
    drawn = torch.Generator().manual_seed(seed)
    while True:
        yield drawn


@dataclass
class Reinforce:
    """One update from some episodes (Williams 1992), their returns standardised.

    With ``values``, a second output of the model is the critic whose estimate is the baseline.
    """

    model: nn.Module
    optimizer: Optimizer
    n_episodes: int = 4
    values: Callable[[Tensor], Tensor] | None = None
    before: Mapping[int, Callable[[], None]] = field(default_factory=dict)
    lengths: deque[float] = field(default_factory=lambda: deque(maxlen=40))

    def __call__(self, i: int, drawn: torch.Generator) -> tuple[float]:
        if i in self.before:
            self.before[i]()
        carts = [_Cart(drawn) for _ in range(self.n_episodes)]
        seen, pushed, alive = self._play(carts, drawn)
        returns = alive.flip(0).cumsum(0).flip(0)
        loss = self._loss(seen, pushed, alive > 0, returns)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.lengths.extend(alive.sum(0).tolist())
        return (loss.item(),)

    def _play(self, carts: list[_Cart], drawn: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """What was seen and done at each time by each cart, and whether its pole stood."""
        stands = [True] * len(carts)
        seen: list[Tensor] = []
        pushed: list[Tensor] = []
        alive: list[Tensor] = []
        while any(stands) and len(seen) < LONGEST:
            state = torch.tensor([cart.state for cart in carts])
            with torch.no_grad():
                chances = self.model(state)[:, :2].softmax(-1).nan_to_num(0.5)
            push = torch.multinomial(chances, 1, generator=drawn)[:, 0]
            seen.append(state)
            pushed.append(push)
            alive.append(torch.tensor(stands, dtype=torch.float32))
            stands = [
                up and cart.push(bool(right))
                for up, cart, right in zip(stands, carts, push, strict=True)
            ]
        return torch.stack(seen), torch.stack(pushed), torch.stack(alive)

    def _loss(self, seen: Tensor, pushed: Tensor, alive: Tensor, returns: Tensor) -> Tensor:
        returns, pushed = returns[alive], pushed[alive]
        told = self.model(seen[alive])
        chosen = F.log_softmax(told[:, :2], -1).gather(-1, pushed[:, None])[:, 0]
        if self.values is None:
            usual = (returns - returns.mean()) / (returns.std() + 1e-6)
            return -(usual * chosen).mean()
        worth = self.values(told)
        returns = returns / LONGEST
        critic = F.mse_loss(worth, returns)
        return critic - ((returns - worth.detach()) * chosen).mean()

    def error(self) -> float:
        """One over how long the last episodes were; 1 before the first."""
        return len(self.lengths) / sum(self.lengths) if self.lengths else 1.0


@dataclass
class ClippedPolicy(Reinforce):
    """Four updates from the same episodes, by a ratio that is clipped (Schulman et al. 2017).

    The third output of the model is the critic. A step of the benchmark is one update.
    """

    n_episodes: int = 8
    played: tuple[Tensor, Tensor, Tensor, Tensor] | None = None

    def __call__(self, i: int, drawn: torch.Generator) -> tuple[float]:
        if i % 4 == 0:
            self.played = self._played(drawn)
        assert self.played is not None
        seen, pushed, returns, before = self.played
        told = self.model(seen)
        chances = torch.distributions.Categorical(logits=told[:, :2])
        gain = returns - told[:, 2].detach()
        gain = (gain - gain.mean()) / (gain.std() + 1e-8)
        ratio = (chances.log_prob(pushed) - before).exp()
        kept = torch.minimum(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
        loss = F.mse_loss(told[:, 2], returns) / 2 - kept - 0.01 * chances.entropy().mean()
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
        self.optimizer.step()
        return (loss.item(),)

    def _played(self, drawn: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        carts = [_Cart(drawn) for _ in range(self.n_episodes)]
        seen, pushed, alive = self._play(carts, drawn)
        self.lengths.extend(alive.sum(0).tolist())
        returns = alive.flip(0).cumsum(0).flip(0)[alive > 0] / LONGEST
        seen, pushed = seen[alive > 0], pushed[alive > 0]
        with torch.no_grad():
            before = F.log_softmax(self.model(seen)[:, :2], -1).gather(-1, pushed[:, None])[:, 0]
        return seen, pushed, returns, before
