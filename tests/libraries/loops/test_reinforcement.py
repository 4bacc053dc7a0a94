"""Agents that act many times between two updates; most of what they compute is not trained on."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Categorical
from torch.nn import functional as F
from torch.optim import Adam

from tests.libraries.loops.witnessed import Wanted, check, in_double, train_beside_a_twin
from tests.models import made
from tests.run.conftest import Watch
from tests.run.oracle import norm_of

pytestmark = pytest.mark.libraries

N_PLACES, N_UPDATES = 6, 8


class Corridor:
    """Go right until the end; each step costs a little."""

    def reset(self) -> Tensor:
        self.place = 0
        return self._seen()

    def step(self, action: int) -> tuple[Tensor, float, bool]:
        self.place = max(self.place + (1 if action else -1), 0)
        is_over = self.place == N_PLACES - 1
        return self._seen(), 1.0 if is_over else -0.05, is_over

    def _seen(self) -> Tensor:
        return F.one_hot(torch.tensor(self.place), N_PLACES).float()


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(N_PLACES, 16), nn.Tanh(), nn.Linear(16, 2))


def discounted(rewards: list[float]) -> Tensor:
    returns: deque[float] = deque()
    for reward in reversed(rewards):
        returns.appendleft(reward + 0.9 * (returns[0] if returns else 0.0))
    return torch.tensor(list(returns))


def reinforce(policy: nn.Sequential) -> Iterator[Wanted]:
    """Each call of an episode is trained on; in between somebody looks, with gradients on."""
    optimizer, world = Adam(policy.parameters(), lr=0.01), Corridor()
    for _ in range(N_UPDATES):
        seen, is_over = world.reset(), False
        chances: list[Tensor] = []
        rewards: list[float] = []
        outputs: list[Tensor] = []
        while not is_over and len(rewards) < 20:
            outputs.append(policy(seen))
            choice = Categorical(logits=outputs[-1])
            action = choice.sample()
            chances.append(choice.log_prob(action))
            seen, reward, is_over = world.step(int(action))
            rewards.append(reward)
        policy(world.reset()).argmax()
        returns = discounted(rewards)
        optimizer.zero_grad()
        loss = -(torch.stack(chances) * (returns - returns.mean())).sum()
        loss.backward()
        optimizer.step()
        yield {
            ("(root)", "calls"): len(outputs),
            ("2", "calls"): len(outputs),
            ("2", "output_norm"): norm_of(*outputs),
            ("2", "output_mean"): float(np.mean([one.detach().double().mean() for one in outputs])),
            ("0", "grad_norm"): norm_of(
                *(p.grad for p in policy[0].parameters() if p.grad is not None)
            ),
        }


def test_of_a_policy_the_calls_of_the_episode_are_recorded_and_no_look_at_it(watch: Watch) -> None:
    alone, policy = made(network), made(network)
    run = watch(policy)
    run.attach("", "output_norm")
    check(run, train_beside_a_twin(reinforce, alone, policy))


def deep_q(network: nn.Sequential) -> Iterator[Wanted]:
    """Acts with gradients on, as a hasty loop does; its target is a copy of the watched network."""
    optimizer, world, memory = Adam(network.parameters(), lr=0.01), Corridor(), []
    target, seen = copy.deepcopy(network), world.reset()
    for update in range(N_UPDATES):
        for _ in range(16):
            action = (
                int(network(seen).argmax()) if torch.rand(()) > 0.3 else int(torch.rand(()) < 0.5)
            )
            then, reward, is_over = world.step(action)
            memory.append(
                (seen, torch.tensor(action), torch.tensor(reward), then, torch.tensor(is_over))
            )
            seen = world.reset() if is_over else then
        chosen = torch.randint(0, len(memory), (12,))
        states, actions, rewards, following, ends = (
            torch.stack(column) for column in zip(*(memory[i] for i in chosen), strict=True)
        )
        with torch.no_grad():
            wanted = rewards + 0.9 * target(following).amax(1) * ~ends
        values = in_double(network)(states.double())
        slopes = torch.autograd.grad(q_loss(values, actions, wanted.double()), values)
        optimizer.zero_grad()
        q_loss(network(states), actions, wanted).backward()
        nn.utils.clip_grad_norm_(network.parameters(), 0.5)
        optimizer.step()
        if update % 3 == 2:
            target.load_state_dict(network.state_dict())
        yield {
            ("(root)", "calls"): 1,
            ("2", "calls"): 1,
            ("2", "output_norm"): norm_of(values),
            ("2", "output_grad_norm"): norm_of(*slopes),
            ("(root)", "grad_norm"): norm_of(
                *(p.grad for p in network.parameters() if p.grad is not None)
            ),
        }


def q_loss(values: Tensor, actions: Tensor, wanted: Tensor) -> Tensor:
    return F.smooth_l1_loss(values.gather(1, actions[:, None])[:, 0], wanted)


def test_of_a_q_network_the_batch_is_recorded_and_none_of_the_actions(watch: Watch) -> None:
    alone, model = made(network), made(network)
    run = watch(model)
    run.attach("", ["output_norm", "grad_norm"])
    check(run, train_beside_a_twin(deep_q, alone, model))
