"""What functions and models of users are called with."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from notebook_probe.experiment.building.calling import accepted, arguments, call_model, placed

BATCH = {"images": torch.ones(2, 3), "extra": torch.zeros(2, 3), "labels": torch.zeros(2)}


class Named(nn.Module):
    def forward(self, images: Tensor, scale: float = 2.0) -> Tensor:
        return images * scale


class Whole(nn.Module):
    def forward(self, inputs: dict[str, Tensor]) -> Tensor:
        return inputs["images"] + inputs["extra"] + 1


class Anything(nn.Module):
    def forward(self, **kwargs: Any) -> list[str]:
        return sorted(kwargs)


class Learns(nn.Module):
    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        return images.sum() + labels.sum()


def test_a_model_gets_what_it_names() -> None:
    assert arguments(Named(), BATCH) == ((), {"images": BATCH["images"]})
    assert call_model(Learns(), BATCH).item() == 6
    assert call_model(Anything(), BATCH) == ["extra", "images"]


def test_a_model_that_names_nothing_gets_the_only_value_or_the_batch() -> None:
    only = {"x": torch.ones(1, 2), "labels": torch.ones(1)}
    assert torch.equal(call_model(nn.Flatten(), only), only["x"])
    assert torch.equal(call_model(Whole(), BATCH), torch.full((2, 3), 2.0))
    two = {"x": torch.ones(1), "y": torch.ones(1), "z": torch.ones(1)}
    assert arguments(nn.Identity(), two, ("y", "z")) == ((two["x"],), {})


def test_a_function_is_given_what_it_takes() -> None:
    def seeded(seed: int, width: int) -> None: ...
    def all_of_it(**rest: Any) -> None: ...

    assert accepted(seeded, seed=1, train=True) == {"seed": 1}
    assert accepted(all_of_it, seed=1, train=True) == {"seed": 1, "train": True}
    assert accepted(nn.Linear, seed=1, train=True) == {}


def test_arrays_become_tensors_and_text_stays() -> None:
    given = {"x": np.ones((2, 2), np.float32), "names": ["a", "b"], "bad": np.array(["a"])}
    found = placed(given, torch.device("cpu"))
    assert torch.equal(found["x"], torch.ones(2, 2))
    assert found["names"] == ["a", "b"]
    assert found["bad"] is given["bad"]
