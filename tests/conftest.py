"""One thread and one seed, so that every number in a test is the same in every run."""

import pytest
import torch
from hypothesis import HealthCheck, settings

torch.set_num_threads(1)

# A busy machine is slow at times; how long an example takes says nothing about its truth.
settings.register_profile(
    "project", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("project")


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)
