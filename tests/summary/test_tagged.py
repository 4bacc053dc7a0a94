"""Values that a model gives of itself under tags."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import notebook_probe as nbp
from notebook_probe.errors import RecordWarning, ReplacedWarning
from notebook_probe.summary import histogram, image, scalar, tensor
from tests.summary.conftest import Collect, a_loop, images, steps_of


class Telling(nn.Module):
    """Gives whatever a function makes of what it computes."""

    def __init__(self, tell: Callable[[Tensor, Tensor], None]) -> None:
        super().__init__()
        self.fc, self.tell = nn.Linear(108, 2), tell

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.fc(x.flatten(1))
        self.tell(x, out)
        return out


def trained(
    one: nbp.SummaryCollector, tell: Callable[[Tensor, Tensor], None], n: int = 6
) -> nbp.Run:
    loop = a_loop(Telling(tell))
    loop.add(one)
    loop.run_steps(images(n), n)
    assert one.run is not None
    one.run.flush()
    return one.run


def test_each_kind_is_in_the_record_at_its_due_steps(collector: Collect) -> None:
    def tell(x: Tensor, out: Tensor) -> None:
        scalar("mean", out.mean())
        tensor("out", out)
        histogram("x", x)
        image("x", x)

    run = trained(collector(collect_freq=4, collect_tensor_freq=3), tell)
    assert steps_of(run, "mean") == steps_of(run, "x_histogram") == steps_of(run, "x_image")
    assert steps_of(run, "mean") == [0, 3]
    assert steps_of(run, "out_tensor") == [0, 2, 5]


def test_values_are_those_of_the_model(collector: Collect) -> None:
    seen: list[tuple[Tensor, Tensor]] = []

    def tell(x: Tensor, out: Tensor) -> None:
        seen.append((x.detach().clone(), out.detach().clone()))
        scalar("mean", out.mean())
        tensor("out", out)
        histogram("x", x)

    run = trained(collector(), tell, 1)
    x, out = seen[0]
    assert run.series("", "mean").values[0] == pytest.approx(float(out.mean()))
    assert np.array_equal(run.series("", "out_tensor").values[0], out.numpy())
    edges, counts = run.series("", "x_histogram").values[0]
    n_bins = x.numel() // 10 + 1
    oracle, at = np.histogram(x.numpy().astype(np.float64), n_bins)
    assert np.array_equal(counts[:n_bins], oracle)
    assert np.allclose(edges[: n_bins + 1], at)
    assert np.isnan(counts[n_bins:]).all()


def test_an_evaluation_and_a_model_that_nobody_follows_record_nothing(collector: Collect) -> None:
    def tell(x: Tensor, out: Tensor) -> None:
        scalar("mean", out.mean())

    loop, one = a_loop(Telling(tell)), collector(collect_freq=1)
    loop.add(one)
    loop.run_steps(images(2), 2)
    loop.eval(images(3))
    Telling(tell)(images(1)[0][0])
    assert one.run is not None
    assert steps_of(one.run, "mean") == [0, 1]


def test_of_a_tag_that_comes_twice_the_newest_counts_and_one_warning_says_so(
    collector: Collect,
) -> None:
    def tell(x: Tensor, out: Tensor) -> None:
        scalar("n", 1.0)
        scalar("n", 2.0)

    with pytest.warns(ReplacedWarning) as told:
        run = trained(collector(collect_freq=1), tell)
    assert run.series("", "n").values.tolist() == [2.0] * 6
    assert len(told) == 1


def test_a_scalar_of_several_elements_is_dropped_and_told_of_once(collector: Collect) -> None:
    def tell(x: Tensor, out: Tensor) -> None:
        scalar("many", out)
        scalar("one", out.sum())

    with pytest.warns(RecordWarning, match=r"scalar\('many'\) is not recorded") as told:
        run = trained(collector(collect_freq=1), tell)
    assert len(told) == 1
    assert len(steps_of(run, "one")) == 6
    assert "many" not in run.data


@pytest.mark.parametrize(
    ("tell", "value", "why"),
    [
        (scalar, "high", r"scalar\('odd'\) is not recorded: a str; allowed: a number or a tensor"),
        (scalar, 10**400, "not recorded: the integer is too large for float64"),
        (tensor, None, "a NoneType; allowed: a number or a tensor"),
        (histogram, "abc", "a str; allowed: a number or a tensor"),
        (
            image,
            torch.zeros(4, 8),
            r"a float32 tensor \(4, 8\); images are real numbers \(n, 1 or 3",
        ),
        (image, torch.zeros(2, 5, 4, 4), r"a float32 tensor \(2, 5, 4, 4\); images are"),
        (image, torch.zeros(0, 3, 4, 4), r"a float32 tensor \(0, 3, 4, 4\); images are"),
        (image, torch.zeros(2, 3, 4, 4, dtype=torch.cfloat), "a complex64 tensor"),
    ],
)
def test_what_cannot_be_recorded_is_told_of_by_what_it_is_and_what_is_allowed(
    collector: Collect, tell: Callable[[str, Any], None], value: Any, why: str
) -> None:
    with pytest.warns(RecordWarning, match=why) as told:
        run = trained(collector(collect_freq=1), lambda x, out: tell("odd", value), 3)
    assert len(told) == 1
    (event,) = [event for event in run.events if event.kind == "summary"]
    assert f"3 {tell.__name__}('odd')" in event.text


def test_an_integer_of_more_than_64_bits_is_recorded_as_a_float(collector: Collect) -> None:
    run = trained(collector(), lambda x, out: scalar("long", -(10**30)), 1)
    assert run.series("", "long").values.tolist() == [np.float32(-1e30)]


def test_a_sparse_tensor_is_recorded_with_its_zeros(collector: Collect) -> None:
    sparse = torch.eye(3).to_sparse()
    run = trained(collector(), lambda x, out: tensor("eye", sparse), 1)
    assert np.array_equal(run.series("", "eye_tensor").values, [np.eye(3)])


def test_a_tag_is_text(collector: Collect) -> None:
    with pytest.raises(TypeError, match="the tag is text"):
        scalar("", 1.0)


def test_a_forward_that_is_run_again_for_its_gradients_tells_nothing_anew(
    collector: Collect,
) -> None:
    class Checkpointed(Telling):
        def forward(self, x: Tensor) -> Tensor:
            again: Tensor = checkpoint(super().forward, x, use_reentrant=False)
            return again

    loop, one = a_loop(Checkpointed(lambda x, out: scalar("mean", out.mean()))), collector()
    loop.add(one)
    loop.run_steps(images(3), 3)  # a replaced value would warn, which is an error here
    assert one.run is not None
    assert steps_of(one.run, "mean") == [0]


def test_a_tensor_of_another_shape_has_a_name_of_its_own(collector: Collect) -> None:
    sizes = iter([3, 5, 3])
    one = collector(collect_tensor_freq=1, collect_specified_data={"collect_graph": False})
    run = trained(one, lambda x, out: tensor("part", out[:1].repeat(next(sizes), 1)), 3)
    assert steps_of(run, "part_tensor") == [0, 2]
    assert steps_of(run, "part_tensor_5x2") == [1]


def files(folder: Path) -> dict[str, Any]:
    return {path.name: np.load(path) for path in folder.glob("summary/export_*/tensor/*.npy")}


def test_recorded_tensors_are_read_only_files_too(collector: Collect, tmp_path: Path) -> None:
    one = collector(collect_tensor_freq=2, export_options={"tensor_format": "npy"})
    run = trained(one, lambda x, out: tensor("fc/out", out), 5)
    written = files(tmp_path)
    assert set(written) == {"fc%2Fout_1.npy", "fc%2Fout_2.npy", "fc%2Fout_4.npy"}
    assert np.array_equal(written["fc%2Fout_4.npy"], run.series("", "fc_out_tensor").values[2])
    (path, *_) = tmp_path.glob("summary/export_*/tensor/*.npy")
    assert path.stat().st_mode & 0o222 == 0


def test_what_cannot_be_written_is_told_of_once_and_training_goes_on(
    collector: Collect, tmp_path: Path
) -> None:
    one = collector(collect_tensor_freq=1, export_options={"tensor_format": "npy"})
    tag = "out" + "/" * 100  # as a file's name it is too long
    with pytest.warns(RecordWarning, match="a tensor was not exported") as told:
        run = trained(one, lambda x, out: tensor(tag, out), 3)
    assert len(told) == 1
    assert steps_of(run, "out_tensor") == [0, 1, 2]
    assert files(tmp_path) == {}


def test_a_file_where_the_folder_of_exports_should_be_is_no_end_of_a_training(
    collector: Collect, tmp_path: Path
) -> None:
    one = collector(collect_tensor_freq=1, export_options={"tensor_format": "npy"})

    def spoil(x: Tensor, out: Tensor) -> None:
        tensor("out", out)
        for place in tmp_path.glob("summary/export_*"):
            if place.is_dir():
                shutil.rmtree(place)
                place.write_text("")

    with pytest.warns(RecordWarning, match="a tensor was not exported"):
        run = trained(one, spoil, 40)
    assert len(steps_of(run, "out_tensor")) == 40


@pytest.mark.parametrize("value", [3.0, 0.0, -2.5])
def test_the_histogram_of_a_constant_has_edges_half_a_unit_on_either_side(
    value: float, collector: Collect
) -> None:
    """As numpy has it: every element in one bin."""
    given = torch.full((108,), value)
    run = trained(collector(collect_freq=1), lambda x, out: histogram("same", given), n=1)
    edges, counts = run.series("", "same_histogram").values[0]
    oracle, at = np.histogram(given.numpy(), 108 // 10 + 1, (value - 0.5, value + 0.5))
    np.testing.assert_allclose(edges[: len(at)], at, rtol=1e-6)
    np.testing.assert_array_equal(counts[: len(oracle)], oracle)
    assert counts[: len(oracle)].sum() == 108
