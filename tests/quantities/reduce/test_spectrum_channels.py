"""Where a module's channels are, and in what layout."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from notebook_probe.errors import UnreadableError
from notebook_probe.quantities.reduce import samples
from notebook_probe.quantities.reduce.samples import channel_axis
from notebook_probe.quantities.reduce.spectrum import spectrum
from tests.quantities.reduce.covariances import close, eigenvalues, normal


def moved(tensor: Tensor, axis: int) -> Tensor:
    """Rows and channels by the definition: the axis last, the rest flattened."""
    return torch.stack([tensor.select(axis, c).flatten() for c in range(tensor.shape[axis])], dim=1)


CASES: list[tuple[nn.Module, tuple[int, ...], int]] = [
    (nn.Linear(5, 2), (7, 5), 1),
    (nn.Linear(5, 2), (3, 4, 5), 2),
    (nn.Linear(5, 2), (2, 3, 4, 5), 3),
    (nn.Conv1d(4, 2, 1), (3, 4, 6), 1),
    (nn.Conv1d(4, 2, 1), (4, 6), 0),
    (nn.Conv2d(4, 2, 1), (3, 4, 5, 6), 1),
    (nn.Conv2d(4, 2, 1), (4, 5, 6), 0),
    (nn.ConvTranspose2d(4, 2, 1), (3, 4, 5, 6), 1),
    (nn.Conv3d(4, 2, 1), (2, 4, 3, 2, 5), 1),
    (nn.Conv3d(4, 2, 1), (4, 3, 2, 5), 0),
    (nn.InstanceNorm1d(4), (4, 6), 0),
    (nn.InstanceNorm2d(4), (3, 4, 5, 6), 1),
    (nn.BatchNorm1d(4), (9, 4), 1),
    (nn.BatchNorm1d(4), (3, 4, 6), 1),
    (nn.BatchNorm2d(4), (3, 4, 5, 6), 1),
    (nn.GroupNorm(2, 4), (3, 4, 6), 1),
    (nn.GroupNorm(2, 4), (3, 4, 5, 6), 1),
    (nn.LayerNorm(6), (3, 4, 5, 6), 3),
    (nn.RMSNorm(6), (3, 5, 6), 2),
    (nn.LSTM(6, 2), (3, 5, 6), 2),
    (nn.GRUCell(6, 2), (5, 6), 1),
    (nn.MultiheadAttention(6, 2), (3, 5, 6), 2),
    (nn.Embedding(9, 6), (3, 5, 6), 2),
    (nn.ReLU(), (5, 6), 1),
    (nn.ReLU(), (3, 5, 6), 2),
    (nn.ReLU(), (3, 4, 5, 6), 1),
    (nn.Sequential(nn.ReLU()), (3, 4, 5, 6), 1),
]


@pytest.mark.parametrize(
    ("module", "shape", "axis"), CASES, ids=lambda case: str(case).split("(")[0]
)
def test_the_channel_axis_is_that_of_the_module(
    module: nn.Module, shape: tuple[int, ...], axis: int
) -> None:
    tensor = normal(*shape) * torch.arange(1.0, shape[-1] + 1)
    assert channel_axis(module, shape) == axis
    close(eigenvalues(tensor, module), moved(tensor, axis))


def test_a_subclass_is_treated_as_its_base() -> None:
    class Mine(nn.Conv2d):
        pass

    unbatched = (4, 6, 6)
    assert channel_axis(Mine(4, 2, 1), unbatched) == 0
    assert channel_axis(nn.LazyConv2d(2, 1), unbatched) == 0


class SwappingNorm(nn.LayerNorm):
    """As in torchvision's and timm's ConvNeXt."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.movedim(1, -1)).movedim(-1, 1)


def test_a_norm_that_swaps_the_axes_itself_has_its_channels_where_their_number_is() -> None:
    x = normal(3, 4, 5, 6)
    assert SwappingNorm(4)(x).shape == x.shape
    assert channel_axis(SwappingNorm(4), x.shape) == 1
    assert channel_axis(SwappingNorm(6), x.shape) == 3


@pytest.mark.parametrize(
    ("dtype", "module"),
    [
        (torch.int64, nn.Embedding(12, 2)),
        (torch.int64, None),
        (torch.int32, nn.Embedding(12, 2)),
        (torch.int32, nn.EmbeddingBag(12, 2)),
    ],
)
def test_indices_have_no_channels(dtype: torch.dtype, module: nn.Module | None) -> None:
    words = torch.arange(12).reshape(3, 4).to(dtype)
    with pytest.raises(UnreadableError, match="numbers are indices, which have no channels"):
        spectrum(words, module)


def test_what_is_counted_in_whole_numbers_has_channels() -> None:
    pixels = torch.arange(12, dtype=torch.uint8).reshape(3, 4)
    assert spectrum(pixels, nn.Linear(4, 2)).n_rows == 3


@pytest.mark.parametrize("n_dims", [2, 3, 4, 5])
@pytest.mark.parametrize("module", [None, nn.Conv3d(1, 1, 1), nn.BatchNorm2d(1), nn.ReLU()])
def test_a_tensor_of_any_dimension_has_a_channel_axis(
    module: nn.Module | None, n_dims: int
) -> None:
    assert 0 <= channel_axis(module, (2,) * n_dims) < n_dims


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "channels last": lambda images: images.contiguous(memory_format=torch.channels_last),
    "strided": lambda images: images.repeat_interleave(2, -1)[..., ::2],
    "expanded": lambda images: images[:, :1].expand_as(images),
    "permuted": lambda images: images.permute(2, 3, 0, 1).contiguous().permute(2, 3, 0, 1),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("block", [1, 40, 1 << 17])
def test_the_layout_in_memory_and_the_blocks_do_not_matter(
    layout: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "BLOCK", block)
    images = LAYOUTS[layout](normal(9, 3, 5, 4))
    close(eigenvalues(images, nn.Conv2d(3, 1, 1)), moved(images, 1))
    tokens = images.movedim(1, -1)
    close(eigenvalues(tokens, nn.Linear(3, 1)), moved(images, 1))


@pytest.mark.parametrize("shape", [(500, 30), (5, 100, 30), (2, 30, 15, 20)])
def test_of_very_many_channels_some_rows_are_drawn_and_told(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("notebook_probe.quantities.reduce.spectrum.WIDEST", 20)
    module = nn.Conv2d(30, 1, 1) if len(shape) == 4 else nn.Linear(30, 1)
    found = spectrum(normal(*shape), module)
    assert found.n_rows == 20
    assert len(set(found.matrix[:, 0].tolist())) == 20, "each of them once"
    assert found.eigenvalues[19:].sum() == 0


def test_of_as_many_channels_as_are_allowed_every_row_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("notebook_probe.quantities.reduce.spectrum.WIDEST", 20)
    assert spectrum(normal(500, 20), nn.Linear(20, 1)).n_rows == 500
