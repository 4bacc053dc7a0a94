"""The same runs as in the tests of the run: a folder of their own, closed at the end."""

from collections.abc import Iterator

import pytest
import torch

from tests.run.conftest import model, watch

__all__ = ["model", "watch"]


@pytest.fixture
def swapping() -> Iterator[None]:
    """Let torch swap the contents of parameters where a model is converted."""
    before = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)
    yield
    torch.__future__.set_swap_module_params_on_conversion(before)
