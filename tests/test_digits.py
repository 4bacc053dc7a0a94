"""The digits that tests train on."""

from __future__ import annotations

import pytest
import torch

from tests.digits import digits


@pytest.mark.slow  # the import
def test_they_are_those_of_scikit_learn() -> None:
    from sklearn.datasets import load_digits

    expected = load_digits()
    images, labels = digits()
    assert torch.equal(images, torch.tensor(expected.data, dtype=torch.float32) / 16)
    assert torch.equal(labels, torch.tensor(expected.target))
