"""Rollouts that teach nothing, from another policy or clipped away are found; healthy ones not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.record.format.loss_names import NAMED_SERIES

RULES = ("clips_too_often", "groups_without_signal", "rollouts_differ")
N_PROMPTS, N_TOKENS, N_KINDS, N_IN_GROUP = 6, 4, 8, 8
Reward = Callable[[Tensor], Tensor]


def of_right_tokens(tokens: Tensor) -> Tensor:
    """Share of the tokens that are the number of their prompt, (prompt, completion)."""
    wanted = torch.arange(N_PROMPTS)[:, None, None]
    return (tokens == wanted).float().mean(-1)


def of_all_alike(tokens: Tensor) -> Tensor:
    """A reward that tells no completion of a prompt from another."""
    return torch.linspace(0, 0.5, N_PROMPTS)[:, None].expand(tokens.shape[:2])


class Policy(nn.Module):
    """Four tokens of eight kinds for each prompt, independent of each other."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Embedding(N_PROMPTS, 16), nn.Linear(16, 32), nn.Tanh())
        self.head = nn.Linear(32, N_TOKENS * N_KINDS)

    def forward(self, temperature: float = 1.0) -> Tensor:
        """Log-probabilities (prompt, token, kind)."""
        logits = self.head(self.body(torch.arange(N_PROMPTS))).view(-1, N_TOKENS, N_KINDS)
        chances: Tensor = (logits.float() / temperature).log_softmax(-1)
        return chances


def alerts_of(
    store: Path,
    *,
    reward: Reward = of_right_tokens,
    rate: float = 3e-3,
    temperature: float = 1.0,
    n_updates: int = 2,
) -> list[str]:
    """Train by GRPO for 60 steps, sample in bfloat16, and log by the names of TRL."""
    torch.manual_seed(0)
    policy, sampler = Policy(), Policy().bfloat16()
    optimizer = torch.optim.Adam(policy.parameters(), lr=rate)
    with nbp.watch(policy, optimizer, store, probes=None, budget=None) as run:
        for _ in range(60 // n_updates):
            sampler.load_state_dict(policy.state_dict())
            with torch.no_grad():
                sampled_from = sampler(temperature)
                before = policy()
            drawn = torch.distributions.Categorical(logits=sampled_from).sample((N_IN_GROUP,))
            tokens = drawn.transpose(0, 1)  # (prompt, completion, token)
            rewards = reward(tokens)
            spread = rewards.std(1, keepdim=True)
            advantages = (rewards - rewards.mean(1, keepdim=True)) / (spread + 1e-4)
            old = _of(before, tokens)
            gap = (old - _of(sampled_from, tokens)).abs().mean()
            for _ in range(n_updates):
                ratio = (_of(policy(), tokens) - old).exp()
                kept = ratio.clamp(0.8, 1.2)
                gains = advantages[..., None]
                loss = -torch.minimum(ratio * gains, kept * gains).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                is_clipped = ((ratio < 0.8) & (gains < 0)) | ((ratio > 1.2) & (gains > 0))
                run.log(
                    {
                        "loss": loss.detach(),
                        "reward": rewards.mean(),
                        "frac_reward_zero_std": (spread < 1e-8).float().mean(),
                        "sampling/sampling_logp_difference/mean": gap,
                        "clip_ratio/region_mean": is_clipped.float().mean(),
                    }
                )
    return [alert.rule for alert in run.alerts if alert.rule in RULES]


def _of(chances: Tensor, tokens: Tensor) -> Tensor:
    """Log-probabilities of tokens, (prompt, completion, token)."""
    every = chances[:, None].expand(*tokens.shape, N_KINDS)
    return every.gather(-1, tokens[..., None])[..., 0]


@pytest.mark.slow
def test_a_policy_that_learns_from_its_rollouts_is_not_accused(tmp_path: Path) -> None:
    assert alerts_of(tmp_path / "run.zarr") == []


def test_a_policy_that_has_learned_its_prompts_is_not_accused(tmp_path: Path) -> None:
    policy = nn.Linear(1, 1)
    with nbp.watch(policy, store=tmp_path / "run.zarr", probes=None) as run:
        for step in range(60):
            run.log(reward=min(1.0, 0.1 + step / 20), frac_reward_zero_std=min(1.0, step / 25))
            run.step()
    assert not run.alerts


@pytest.mark.slow
def test_rewards_that_tell_no_completion_from_another_are_found(tmp_path: Path) -> None:
    assert alerts_of(tmp_path / "run.zarr", reward=of_all_alike) == ["groups_without_signal"]


@pytest.mark.slow
def test_rollouts_of_another_temperature_are_found(tmp_path: Path) -> None:
    assert "rollouts_differ" in alerts_of(tmp_path / "run.zarr", temperature=0.6)


@pytest.mark.parametrize("name", NAMED_SERIES["clip_fraction"])
def test_a_clip_fraction_is_known_by_the_names_of_trainers(tmp_path: Path, name: str) -> None:
    policy = nn.Linear(1, 1)
    with nbp.watch(policy, store=tmp_path / "run.zarr", probes=None) as run:
        for _ in range(12):
            run.log({name: 0.75})
            run.step()
    [alert] = run.alerts
    assert (alert.rule, alert.quantities) == ("clips_too_often", (name,))
    assert alert.sentence.startswith("75% of the probability ratios were clipped")


@pytest.mark.slow
def test_updates_that_leave_the_region_of_their_rollouts_are_found(tmp_path: Path) -> None:
    found = alerts_of(tmp_path / "run.zarr", rate=0.3, n_updates=12)
    assert "clips_too_often" in found
