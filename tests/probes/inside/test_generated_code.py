"""Code that readings add to a compiled graph: loops in the order of memory, and nothing to keep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch._inductor.config
from torch import Tensor, nn
from torch._inductor.utils import run_and_get_code
from torch.autograd.graph import saved_tensors_hooks

from notebook_probe.quantities.reduce.reductions import measuring
from notebook_probe.quantities.reduce.traced_stat import traced_sums
from tests.models import floats, made
from tests.probes.inside.compiled_models import whole
from tests.run.conftest import Watch

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf"),
]

ALL = frozenset({"sumsq", "moments", "zeros", "nonfinite", "largest"})
CONV = nn.Conv2d(16, 16, 1)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Generate the code here: a cached one may have been made for other instructions."""
    torch._dynamo.reset()
    with torch._inductor.config.patch(fx_graph_cache=False):
        yield


def of_tensor(tensor: Tensor) -> Tensor:
    return traced_sums(tensor, ALL)


def of_channels(tensor: Tensor) -> list[Tensor]:
    ways = [measuring(part).traced for part in ("channels", "peaks", "magnitudes")]
    return [way.sums(tensor, CONV, frozenset()) for way in ways if way is not None]


READ: list[Any] = [torch._dynamo.allow_in_graph(one) for one in (of_tensor, of_channels)]


@pytest.mark.parametrize("read", READ)
def test_images_in_channels_last_order_are_read_in_the_order_of_their_memory(read: Any) -> None:
    """A flat view of them is read element by element, at places found by divisions."""
    images = torch.randn(2, 16, 8, 8).to(memory_format=torch.channels_last)
    _, [code] = run_and_get_code(torch.compile(lambda tensor: read(tensor)), images)
    assert "loadu(in_ptr0" in code, "many elements at a time"
    assert "div_floor_integer" not in code


class Images(nn.Module):
    """Ends with an activation, whose mask need not be kept for the backward."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.relu = nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU()
        self.head = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.relu(self.norm(self.conv(x))).mean((2, 3)))


def saved_by(called: Any) -> int:
    """Return the bytes of large tensors that a call keeps for its backward."""
    n_bytes: list[int] = []

    def pack(tensor: Tensor) -> Tensor:
        n_bytes.append(tensor.nbytes if tensor.dim() == 4 else 0)
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        called(floats(3, 2, 6, 6)(0)).sum().backward()
    return sum(n_bytes)


def test_a_graph_with_readings_keeps_nothing_more_for_its_backward(watch: Watch) -> None:
    alone, model = made(Images), made(Images)
    bytes_alone = saved_by(whole(alone, "inductor"))
    torch._dynamo.reset()
    watch(model, probes={"*": ["output_norm", "output_std", "output_grad_norm"]}, budget=None)
    assert saved_by(whole(model, "inductor")) == bytes_alone > 0


def test_the_sums_of_all_modules_are_handed_out_once_in_each_direction(watch: Watch) -> None:
    model = made(Images)
    names = ["output_norm", "output_grad_norm", "output_channel_rms", "input_grad_norm"]
    watch(model, probes={"*": names}, budget=None)
    called = whole(model)
    images = floats(3, 2, 6, 6)(0)
    called(images).sum().backward()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        called(images).sum().backward()
    calls = {event.key: event.count for event in profile.key_averages()}
    assert calls["notebook_probe::keep"] == 2
