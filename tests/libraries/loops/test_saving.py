"""Saving, copying and loading a watched model in the midst of its training."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_model, save_model
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer
from transformers import GPT2Config, GPT2LMHeadModel

from tests.libraries.case import words
from tests.libraries.loops.witnessed import Wanted, check, train_beside_a_twin
from tests.models import made
from tests.run.conftest import Watch
from tests.run.oracle import norm_of

pytestmark = pytest.mark.libraries


def language_model() -> GPT2LMHeadModel:
    """Its head is its embedding."""
    small = {"n_layer": 1, "n_head": 2, "n_embd": 16, "vocab_size": 50, "n_positions": 32}
    return GPT2LMHeadModel(GPT2Config(**small, bos_token_id=0, eos_token_id=0))


def train_step(model: GPT2LMHeadModel, optimizer: Optimizer, step: int) -> Wanted:
    output = model(input_ids=words(step), labels=words(step))
    weights = [one.detach().clone() for one in model.transformer.wte.parameters()]
    optimizer.zero_grad()
    output.loss.backward()
    optimizer.step()
    gradients = [one.grad for one in model.transformer.wte.parameters() if one.grad is not None]
    return {
        ("transformer.wte", "weight_norm"): norm_of(*weights),
        ("transformer.wte", "grad_norm"): norm_of(*gradients),
        ("lm_head", "output_norm"): norm_of(output.logits),
        ("lm_head", "calls"): 1,
    }


class Saved:
    """Trains, and keeps what it has got after every step in all the ways that people do.

    What is watched goes on with the weights and the optimizer's state of its own file.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._n = folder, 0
        self.files: list[dict[str, bytes]] = []
        """Of every model that was trained: name -> what lies in the file."""

    def train(self, model: GPT2LMHeadModel) -> Iterator[Wanted]:
        self._n += 1
        folder = self._folder / str(self._n)
        optimizer: Optimizer = AdamW(model.parameters(), lr=1e-2)
        best = copy.deepcopy(model)
        for step in range(4):
            yield train_step(model, optimizer, step)
            self._save(model, optimizer, best, folder / str(step))
            best = copy.deepcopy(model)
        self.files.append(
            {str(file.relative_to(folder)): file.read_bytes() for file in _files(folder)}
        )
        optimizer = self._go_back(model, folder / "1")
        for step in range(4, 6):
            yield train_step(model, optimizer, step)

    def _save(
        self, model: GPT2LMHeadModel, optimizer: Optimizer, best: nn.Module, folder: Path
    ) -> None:
        folder.mkdir(parents=True)
        torch.save(model, folder / "model.pt")
        torch.save(best, folder / "best.pt")
        torch.save(
            {"model": model.state_dict(), "optimizer": optimizer.state_dict()}, folder / "both.pt"
        )
        model.save_pretrained(folder / "pretrained")
        save_model(model, str(folder / "model.safetensors"))

    def _go_back(self, model: GPT2LMHeadModel, folder: Path) -> Optimizer:
        both: dict[str, Any] = torch.load(folder / "both.pt", weights_only=True)
        model.load_state_dict(both["model"])
        optimizer = AdamW(model.parameters(), lr=1e-2)
        optimizer.load_state_dict(both["optimizer"])
        return optimizer


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())


def answers(model: nn.Module) -> Tensor:
    with torch.no_grad():
        return model.eval()(input_ids=words(9)).logits


def test_what_is_saved_is_byte_for_byte_that_of_a_twin_and_training_goes_back_to_it(
    tmp_path: Path, watch: Watch
) -> None:
    alone, model = made(language_model), made(language_model)
    run, saved = watch(model, probes=["default", "gradients"]), Saved(tmp_path)
    check(run, train_beside_a_twin(saved.train, alone, model))
    one, other = saved.files
    assert len(one) >= 4 * 5
    assert {name for name in {**one, **other} if one.get(name) != other.get(name)} == set()
    assert not any(b"notebook_probe" in content for content in other.values())


def test_what_was_saved_is_loaded_and_answers_as_the_model_did(
    tmp_path: Path, watch: Watch
) -> None:
    model = made(language_model)
    watch(model)
    train_step(model, AdamW(model.parameters(), lr=1e-2), 0)
    wanted = answers(copy.deepcopy(model))
    torch.save(model, tmp_path / "model.pt")
    model.save_pretrained(tmp_path / "pretrained")
    save_model(model, str(tmp_path / "model.safetensors"))
    again = made(language_model, seed=5)
    load_model(again, str(tmp_path / "model.safetensors"))
    whole = torch.load(tmp_path / "model.pt", weights_only=False)
    pretrained = GPT2LMHeadModel.from_pretrained(tmp_path / "pretrained")
    for loaded in (whole, pretrained, again):
        assert torch.equal(answers(loaded), wanted)
