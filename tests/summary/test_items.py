"""The items of a collector: loss, histograms, input images, the graph; and those that fail."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.errors import RecordWarning
from notebook_probe.summary.followed_run import FollowedRun
from notebook_probe.summary.items.histograms import QUANTITIES
from notebook_probe.summary.items.metric import metric_of
from notebook_probe.summary.pixels import PER_ROW, as_bytes, fitting, tiled
from notebook_probe.train import Loop, Trainer
from tests.summary.conftest import Collect, Small, a_loop, images, steps_of


def run_of(one: nbp.SummaryCollector, data: Any, model: nn.Module | None = None) -> nbp.Run:
    loop = a_loop(model)
    loop.add(one)
    loop.run_steps(data, len(data))
    assert one.run is not None
    one.run.flush()
    return one.run


# -------------------------------------------------------------------- the loss


@pytest.mark.parametrize(
    ("outputs", "number"),
    [
        (0.5, 0.5),
        (3, 3.0),
        (torch.tensor([1.0, 2.0, 6.0]), 3.0),
        (torch.tensor([[1, 2]]), 1.5),
        ((torch.tensor(2.0), torch.ones(5, 5)), 2.0),
        ([[np.float32(4.0)], "logits"], 4.0),
    ],
)
def test_the_loss_is_a_mean_and_of_a_list_its_first_items(outputs: Any, number: float) -> None:
    assert float(metric_of(outputs)) == number


@pytest.mark.parametrize("outputs", [None, {}, {"loss": 1.0}, [], (), "0.5", torch.ones(0)])
def test_what_has_no_loss_is_told_of_once_and_the_loss_is_off(
    collector: Collect, tmp_path: Path, outputs: Any
) -> None:
    model = Small()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def train(following: FollowedRun) -> None:
        for x, _ in images(3):
            loss = model(x).sum()
            following.metric(outputs)
            loss.backward()
            optimizer.step()

    with nbp.watch(model, optimizer, store=tmp_path / "own.zarr", probes=None) as run:
        following = collector(collect_freq=1).attach(run)
        with pytest.warns(RecordWarning, match="collect_metric is off") as told:
            train(following)
        assert "loss" not in run.data
    assert len(told) == 1


# -------------------------------------------------------------------- histograms


class Deep(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Flatten(), *(nn.Linear(108, 108) for _ in range(3)), nn.Linear(108, 2))


def recorded_histograms(run: nbp.Run) -> set[str]:
    labels = {str(label) for label in run.data["param_histogram"].module.values}
    return labels - {"(root)"}


def test_without_an_expression_the_optimizers_first_five_are_chosen(collector: Collect) -> None:
    run = run_of(collector(), images(1), Deep())
    assert recorded_histograms(run) == {"1.weight", "1.bias", "2.weight", "2.bias", "3.weight"}


def test_the_order_is_the_optimizers(collector: Collect) -> None:
    loop, one = a_loop(Deep()), collector()
    backwards = [*loop.trainer.model.parameters()][::-1]
    loop.trainer.optimizer = torch.optim.SGD(backwards, 0.1)
    loop.add(one)
    loop.run_steps(images(1), 1)
    assert one.run is not None
    one.run.flush()
    assert recorded_histograms(one.run) == {"4.bias", "4.weight", "3.bias", "3.weight", "2.bias"}


@pytest.mark.parametrize("pattern", [r"2\.", "weight", r".*weight", "1|4"])
def test_an_expression_is_anchored_at_the_start_alone(collector: Collect, pattern: str) -> None:
    names = [name for name, _ in Deep().named_parameters()]
    expected = {name for name in names if re.match(pattern, name)}
    one = collector(collect_specified_data={"histogram_regular": pattern})
    if expected:
        assert recorded_histograms(run_of(one, images(1), Deep())) == expected
    else:
        with pytest.warns(RecordWarning, match="histogram_regular is off"):
            run_of(one, images(1), Deep())


def test_without_its_key_there_are_none(collector: Collect) -> None:
    only = {"collect_metric": True}
    run = run_of(collector(keep_default_action=False, collect_specified_data=only), images(1))
    assert "param_histogram" not in run.data
    assert steps_of(run, "loss") == [0]


def test_counts_are_those_of_the_weights_before_the_update(collector: Collect) -> None:
    model = Small()
    before = model.fc.weight.detach().numpy().astype(np.float64).ravel()
    run = run_of(collector(), images(1), model)
    counts = run.series("fc.weight", "param_histogram").values[0]
    n_bins = before.size // 10 + 1
    assert np.array_equal(counts[:n_bins], np.histogram(before, n_bins)[0])
    ends = [run.series("fc.weight", name).values[0] for name in ("weight_min", "weight_max")]
    assert ends == [np.float32(before.min()), np.float32(before.max())]
    assert {*QUANTITIES} <= {*run.data}


# -------------------------------------------------------------------- images


def pixels_by_hand(batch: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The rule, in float64 and without torch."""
    if batch.dtype == np.uint8:
        return batch.astype(np.float64)
    x = batch.astype(np.float64)
    if x.min() >= 0 and x.max() <= 1:
        return np.round(x * 255)
    if x.min() == x.max():
        return np.zeros_like(x)
    return np.round((x - x.min()) * 255 / (x.max() - x.min()))


@pytest.mark.parametrize(
    "batch",
    [
        torch.arange(0, 250, dtype=torch.uint8).reshape(2, 1, 5, 25),
        torch.rand(2, 3, 4, 4, generator=torch.Generator().manual_seed(0)),
        torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(0)),
        torch.full((1, 1, 2, 2), 7.0),
        torch.full((1, 1, 2, 2), 0.5),
        torch.arange(256).reshape(1, 1, 16, 16),
        torch.tensor([True, False]).reshape(1, 1, 1, 2),
        torch.linspace(-3, 3, 16, dtype=torch.bfloat16).reshape(1, 1, 4, 4),
    ],
    ids=lambda batch: f"{batch.dtype}".removeprefix("torch."),
)
def test_pixels_are_those_of_the_rule(batch: Tensor) -> None:
    whole = batch.float().numpy() if batch.dtype == torch.bfloat16 else batch.numpy()
    assert np.array_equal(as_bytes(batch).numpy(), pixels_by_hand(whole))


def test_what_is_not_finite_spoils_no_other_pixel() -> None:
    batch = torch.tensor([-2.0, 2.0, torch.nan, torch.inf, -torch.inf])
    assert as_bytes(batch).tolist() == [0, 255, 0, 255, 0]


@given(
    n=st.integers(1, 20), channels=st.sampled_from([1, 3]), h=st.integers(1, 5), w=st.integers(1, 5)
)
def test_images_stand_eight_in_a_row(n: int, channels: int, h: int, w: int) -> None:
    batch = torch.arange(n * channels * h * w, dtype=torch.float32).reshape(n, channels, h, w)
    picture = tiled(batch).numpy()
    columns = min(n, PER_ROW)
    by_hand = np.zeros((-(-n // columns) * h, columns * w, 3))
    for i, image in enumerate(batch.numpy()):
        top, left = i // columns * h, i % columns * w
        by_hand[top : top + h, left : left + w] = np.moveaxis(image, 0, 2)
    assert np.array_equal(picture, by_hand)


@given(n=st.integers(1, 300), h=st.integers(1, 700), w=st.integers(1, 700))
def test_a_picture_never_has_more_than_the_record_keeps(n: int, h: int, w: int) -> None:
    held = fitting((n, 3, h, w))
    columns, rows = min(held, PER_ROW), -(-held // PER_ROW)
    assert held <= n
    assert 3 * rows * h * columns * w <= 1 << 20


def test_bytes_that_a_model_gets_are_kept_as_they_are(collector: Collect) -> None:
    class OfBytes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(48, 2)

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.fc(x.flatten(1).float() / 255)
            return out

    batch = torch.randint(20, 90, (4, 3, 4, 4), dtype=torch.uint8)
    run = run_of(collector(), [(batch, torch.zeros(4, dtype=torch.long))], OfBytes())
    kept = run.series("", "input_image").values[0]
    assert np.array_equal(kept, tiled(batch.float()).numpy())


def test_a_smaller_last_batch_has_black_beside_it(collector: Collect) -> None:
    (first, label), (second, _) = images(2, size=8)
    run = run_of(collector(collect_freq=1), [(first, label), (second[:3], label[:3])])
    kept = run.series("", "input_image").values
    assert kept.shape == (2, 6, 48, 3)
    assert np.array_equal(kept[1][:, :18], tiled(as_bytes(second[:3])).numpy())
    assert (kept[1][:, 18:] == 0).all()


def test_batches_that_are_no_images_are_told_of_once(collector: Collect) -> None:
    data = [(torch.ones(4, 108), torch.zeros(4, dtype=torch.long))] * 3
    with pytest.warns(RecordWarning, match="collect_input_data is off") as told:
        run = run_of(collector(collect_freq=1), data, Deep())
    assert len(told) == 1
    assert "input_image" not in run.blobs
    assert steps_of(run, "loss") == [0, 1, 2]


def test_images_of_other_channels_are_dropped_and_counted(collector: Collect) -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(5 * 4, 2))
    data = [(torch.ones(2, 5, 2, 2), torch.zeros(2, dtype=torch.long))] * 3
    run = run_of(collector(collect_freq=1), data, model)
    assert "input_image" not in run.blobs
    (told,) = [event for event in run.events if event.kind == "summary"]
    assert "3 batches of 5 channels" in told.text


class ByName(Small):
    """Called as Hugging Face's are, labels first."""

    def forward(self, labels: Tensor, pixel_values: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(pixel_values)


def steps_by_name(run: nbp.Run, model: nn.Module, n: int, name: str = "pixel_values") -> None:
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for x, y in images(n):
        optimizer.zero_grad()
        model(**{"labels": y, name: x}).sum().backward()
        optimizer.step()
    run.flush()


def test_images_that_a_model_gets_by_name_are_kept(collector: Collect, tmp_path: Path) -> None:
    with nbp.watch(model := ByName(), store=tmp_path / "own.zarr", probes=None) as run:
        with collector(collect_freq=2).attach(run):
            steps_by_name(run, model, 4)
        kept = run.series("", "input_image")
        assert kept.step.values.tolist() == [0, 1, 3]
        batches = [images(4)[step][0] for step in (0, 1, 3)]
        assert np.array_equal(kept.values, [tiled(as_bytes(one)).numpy() for one in batches])


def test_a_batch_by_name_without_images_is_told_of_by_its_names(
    collector: Collect, tmp_path: Path
) -> None:
    class Tokens(nn.Linear):
        def forward(self, labels: Tensor, input_ids: Tensor) -> Tensor:  # type: ignore[override]
            return super().forward(input_ids.flatten(1)[:, :3])

    class Flat(Tokens):
        def __call__(self, labels: Tensor, input_ids: Tensor) -> Any:
            return super().__call__(labels=labels, input_ids=input_ids.flatten(1))

    with nbp.watch(model := Flat(3, 1), store=tmp_path / "own.zarr", probes=None) as run:
        following = collector(collect_freq=1).attach(run)
        with pytest.warns(RecordWarning, match="a batch of labels, input_ids has no images"):
            steps_by_name(run, model, 2, "input_ids")
        following.remove()


def test_an_empty_batch_is_dropped_and_the_next_ones_are_kept(collector: Collect) -> None:
    x, y = images(1)[0]
    model = nn.Sequential(nn.Flatten(), nn.Linear(108, 2))
    one = collector(collect_freq=1, collect_specified_data={"collect_graph": False})
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    trainer = Trainer(model, nn.functional.cross_entropy, optimizer)
    loop = Loop(trainer, check_finite=False)  # the mean of nothing is NaN
    loop.add(one)
    loop.run_steps([(x, y), (x[:0], y[:0]), (x, y)], 3)
    assert one.run is not None
    assert steps_of(one.run, "input_image") == [0, 2]
    (told,) = [event for event in one.run.events if event.kind == "summary"]
    assert "1 batches without a pixel" in told.text


def test_a_model_of_which_only_the_parts_are_called_has_no_images_which_is_said(
    collector: Collect, tmp_path: Path
) -> None:
    pair = nn.ModuleDict({"generator": nn.Linear(2, 108), "critic": Small()})
    optimizer = torch.optim.SGD(pair.parameters(), 0.01)
    with nbp.watch(pair, optimizer, store=tmp_path / "own.zarr", probes=None) as run:
        following = collector(collect_freq=2).attach(run)
        for _ in range(3):
            optimizer.zero_grad()
            made = pair["generator"](torch.ones(2, 2)).reshape(2, 3, 6, 6)
            pair["critic"](made).sum().backward()
            optimizer.step()
        with pytest.warns(RecordWarning, match="ModuleDict itself was not called in training"):
            following.remove()


# -------------------------------------------------------------------- the graph


def test_the_graph_of_the_network_is_there_after_a_few_steps(collector: Collect) -> None:
    run = run_of(collector(), images(4))
    modules = {node.module for node in run.graph().nodes}
    assert {"conv", "fc"} <= modules


def test_without_it_there_is_no_graph(collector: Collect) -> None:
    run = run_of(collector(collect_specified_data={"collect_graph": False}), images(4))
    assert [event for event in run.events if event.kind == "model_graph"] == []
