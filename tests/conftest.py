"""One thread, one seed and nothing compiled: a test is the same in every run and order."""

import gc
import sys
from collections.abc import Iterator

import pytest
import torch
from hypothesis import HealthCheck, settings

torch.set_num_threads(1)

# A busy machine is slow at times; how long an example takes says nothing about its truth.
settings.register_profile(
    "project", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("project")


def pytest_collection_finish() -> None:
    """What has been imported stays: the collector need not go through it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def nothing_compiled() -> Iterator[None]:
    """Whether anything was compiled decides how a model is watched, in the whole process."""
    yield
    if "torch._dynamo" in sys.modules:  # which takes seconds to import
        torch._dynamo.reset()
        torch._dynamo.utils.counters["frames"].clear()
