"""Monitor: the config as Taiyi has it, values of the step they are of, by the loop's numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.errors import RecordWarning
from notebook_probe.taiyi import Monitor, cal_cov_matrix, cal_eig
from tests.models import equal, made
from tests.taiyi.loops import Net, batch, norms, train

Monitored = Callable[..., Monitor]

CONFIG: dict[Any, Any] = {
    nn.BatchNorm1d: [["MeanTID", "linear(5,0)"], "InputSndNorm"],
    "body.first": ["InputSndNorm", ["WeightNorm"], ["InputMean", "linear(2, 1)"]],
    "Linear": [["WeightGradNorm", 3]],
}


def test_a_config_as_it_is_written_gives_the_output_as_it_is_read(
    net: Net, monitored: Monitored
) -> None:
    monitor = monitored(net, CONFIG)
    train(net, monitor, range(7))
    output = monitor.get_output()
    assert set(output) == {"body.norm", "body.first", "head"}
    assert {name: [*steps] for name, steps in output["body.norm"].items()} == {
        "MeanTID": [0, 5],
        "InputSndNorm": [*range(7)],
    }
    first = output["body.first"]
    assert [*first["InputSndNorm"].values()] == pytest.approx(norms(net.inputs), rel=1e-6)
    assert [*first["WeightNorm"].values()] == pytest.approx(norms(net.weights), rel=1e-6)
    assert [*first["InputMean"]] == [1, 3, 5]
    np.testing.assert_allclose(first["InputMean"][3], net.inputs[3].mean(0), rtol=1e-5)
    assert [*output["head"]["WeightGradNorm"]] == [0, 3, 6]
    assert isinstance(first["WeightNorm"][0], float)


def test_training_is_equal_bit_for_bit(net: Net, monitored: Monitored) -> None:
    twin = made(Net)
    train(net, monitored(net, CONFIG), range(5))
    train(twin, None, range(5))
    assert equal(net, twin)


def test_numbers_are_those_of_the_loop_and_schedules_count_by_them(
    net: Net, monitored: Monitored
) -> None:
    monitor = monitored(net, {"body.first": ["WeightNorm", ["InputSndNorm", "linear(5,0)"]]})
    train(net, monitor, range(7, 17))
    output = monitor.get_output()["body.first"]
    assert [*output["WeightNorm"]] == [*range(7, 17)]
    assert [*output["WeightNorm"].values()] == pytest.approx(norms(net.weights), rel=1e-6)
    assert output["InputSndNorm"] == {
        10: pytest.approx(norms(net.inputs)[3], rel=1e-6),
        15: pytest.approx(norms(net.inputs)[8], rel=1e-6),
    }


def test_a_number_that_comes_again_replaces_what_it_had(net: Net, monitored: Monitored) -> None:
    monitor = monitored(net, {"body.first": ["WeightNorm"]})
    train(net, monitor, [0, 1, 2, 1, 2, 3])
    output = monitor.get_output()["body.first"]["WeightNorm"]
    wanted = norms(net.weights)
    assert output == {
        number: pytest.approx(wanted[step], rel=1e-6)
        for number, step in ((0, 0), (1, 3), (2, 4), (3, 5))
    }


def test_only_the_steps_that_are_tracked_are_there(net: Net, monitored: Monitored) -> None:
    monitor = monitored(net, {"body.first": ["WeightNorm"]})
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(9):
        net(batch(step)).square().mean().backward()
        if step % 4 == 0:
            monitor.track(step)
        optimizer.step()
    output = monitor.get_output()["body.first"]["WeightNorm"]
    wanted = norms(net.weights)
    assert output == {step: pytest.approx(wanted[step], rel=1e-6) for step in (0, 4, 8)}


def test_a_loop_that_tracks_nothing_has_the_numbers_of_the_run(
    net: Net, monitored: Monitored
) -> None:
    monitor = monitored(net, {"body.first": [["WeightNorm", "linear(2,0)"]]})
    train(net, None, range(5))
    assert [*monitor.get_output()["body.first"]["WeightNorm"]] == [0, 2, 4]


def test_tracked_behind_the_optimizers_step_it_is_the_same_step(
    net: Net, monitored: Monitored
) -> None:
    monitor = monitored(net, {"body.first": ["WeightNorm"]})
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(4):
        net(batch(step)).square().mean().backward()
        optimizer.step()
        monitor.track(step)
    output = monitor.get_output()["body.first"]["WeightNorm"]
    assert [*output] == [0, 1, 2, 3]
    assert [*output.values()] == pytest.approx(norms(net.weights), rel=1e-6)


def test_a_loop_without_an_optimizer_says_where_its_steps_end(
    net: Net, monitored: Monitored
) -> None:
    monitor = monitored(net, {"body.first": ["WeightNorm", "WeightGradNorm", "InputSndNorm"]})
    gradients = []
    for step in range(4):
        net.zero_grad()
        net(batch(step)).square().mean().backward()
        assert net.weight.grad is not None
        gradients.append(net.weight.grad.double().numpy().copy())
        monitor.track(step)
        monitor.run.step()
        with torch.no_grad():
            for parameter in net.parameters():
                assert parameter.grad is not None
                parameter.sub_(0.1 * parameter.grad)
    output = monitor.get_output()["body.first"]
    assert [*output["WeightNorm"].values()] == pytest.approx(norms(net.weights), rel=1e-6)
    assert [*output["WeightGradNorm"].values()] == pytest.approx(norms(gradients), rel=1e-6)
    assert [*output["InputSndNorm"].values()] == pytest.approx(norms(net.inputs), rel=1e-6)


def test_an_evaluation_in_between_and_a_part_that_is_not_run_leave_no_value(
    monitored: Monitored,
) -> None:
    class Sometimes(Net):
        def forward(self, x: Tensor) -> Tensor:
            first = self.body(x)
            return self.head(first) if len(x) == 6 else first[:, :2]

    net = made(Sometimes)
    monitor = monitored(net, {"head": ["InputSndNorm", "WeightNorm"]})
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(4):
        x = batch(step)
        net(x if step % 2 == 0 else x[:5]).square().mean().backward()
        with torch.no_grad():
            net.eval()(1000 * x)
        net.train()
        monitor.track(step)
        optimizer.step()
    output = monitor.get_output()["head"]
    assert [*output["InputSndNorm"]] == [0, 2], "nothing is repeated"
    assert max(output["InputSndNorm"].values()) < 100, "the evaluation does not count"
    assert [*output["WeightNorm"]] == [0, 1, 2, 3]


def test_two_schedules_of_a_quantity_are_due_at_the_steps_of_both(
    net: Net, monitored: Monitored
) -> None:
    config = {"head": [["WeightNorm", "linear(4,0)"]], nn.Linear: [["WeightNorm", "linear(3,0)"]]}
    monitor = monitored(net, config)
    train(net, monitor, range(9))
    output = monitor.get_output()
    assert [*output["head"]["WeightNorm"]] == [0, 3, 4, 6, 8]
    assert [*output["body.first"]["WeightNorm"]] == [0, 3, 6]


def test_functions_callables_and_vectors_are_taken(net: Net, monitored: Monitored) -> None:
    @nbp.quantity(name="test_first_input")
    def first_input(input: Tensor) -> Tensor:
        return input[0, 0]

    config = {"body.first": [[first_input, lambda step: step in (1, 4)], "input_cov_eigs"]}
    monitor = monitored(net, config)
    train(net, monitor, range(5))
    output = monitor.get_output()["body.first"]
    assert output["test_first_input"] == {
        step: pytest.approx(net.inputs[step][0, 0], rel=1e-6) for step in (1, 4)
    }
    wanted = np.linalg.eigvalsh(np.cov(net.inputs[2], rowvar=False))[::-1]
    np.testing.assert_allclose(output["input_cov_eigs"][2], wanted, rtol=1e-4)


def test_clean_mem_empties_output_and_windows_and_leaves_the_record(
    net: Net, monitored: Monitored
) -> None:
    """The window of the second due step, 7, holds what came after, and not step 4."""
    means: list[Any] = []

    def note(norm: nn.BatchNorm1d, given: tuple[Tensor], output: Tensor) -> None:
        means.append(given[0].detach().double().mean(0).numpy())

    norm: Any = net.body.get_submodule("norm")
    norm.register_forward_hook(note)
    monitor = monitored(net, {"body.norm": [["MeanTID", "linear(4,3)"]], "head": ["WeightNorm"]})
    train(net, monitor, range(5))
    monitor.clean_mem()
    assert monitor.get_output() == {"body.norm": {"MeanTID": {}}, "head": {"WeightNorm": {}}}
    train(net, monitor, range(5, 8))
    output = monitor.get_output()
    assert [*output["head"]["WeightNorm"]] == [5, 6, 7]
    mean, scale = norm.running_mean.double().numpy(), norm.running_var.double().sqrt().norm().item()
    wanted = np.mean([np.linalg.norm(one - mean) for one in means[5:]]) / (scale + 1e-8)
    assert output["body.norm"]["MeanTID"] == {7: pytest.approx(wanted, rel=1e-5)}
    assert len(monitor.run.series("head", "WeightNorm")) == 8


@pytest.mark.parametrize("config", [None, {}])
def test_no_config_measures_nothing(config: Any, net: Net, monitored: Monitored) -> None:
    monitor = monitored(net, config)
    train(net, monitor, range(3))
    assert monitor.get_output() == {}
    assert monitor.run.probes() == []


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"body.frist": ["WeightNorm"]}, "body.first"),
        ({"Conv2d": ["WeightNorm"]}, "Conv2d"),
        ({nn.Conv2d: ["WeightNorm"]}, "Conv2d"),
        ({"head": ["WeightStatistic"]}, "WeightStatistic"),
        ({"head": ["MeanTID"]}, "running"),
        ({"head": [["WeightNorm", "linear"]]}, "linear"),
        ({"head": [["WeightNorm", "linear(0,1)"]]}, "at least 1"),
        ({"head": [["WeightNorm", "linear(1,0)", 3]]}, "allowed are"),
    ],
)
def test_what_is_not_there_is_refused_before_anything_is_recorded(
    config: Any, said: str, net: Net, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=said):
        Monitor(net, config, store=tmp_path / "run.zarr")
    assert [*tmp_path.iterdir()] == []


def test_what_is_no_config_or_no_number_is_refused(net: Net, monitored: Monitored) -> None:
    with pytest.raises(TypeError, match=r"Monitor\(\.\.\., list\): a config is a dict"):
        Monitor(net, ["WeightNorm"])  # type: ignore[arg-type]
    monitor = monitored(net, {"head": ["WeightNorm"]})
    for wrong in (1.5, "1", True, None):
        with pytest.raises(TypeError, match=r"track\(.*a whole number"):
            monitor.track(wrong)  # type: ignore[arg-type]
    monitor.run.close()
    with pytest.raises(nbp.ClosedRunError, match=r"track\(0\): run 'Net' is closed"):
        monitor.track(0)


def test_taiyis_functions_are_ours() -> None:
    rows = batch(0)
    wanted = np.cov(rows.double().numpy(), rowvar=False)
    np.testing.assert_allclose(cal_cov_matrix(rows), wanted, rtol=1e-9)
    np.testing.assert_allclose(
        cal_eig(cal_cov_matrix(rows)), np.linalg.eigvalsh(wanted)[::-1], rtol=1e-9
    )


def test_the_output_outlives_the_run_and_the_model(monitored: Monitored) -> None:
    net = made(Net)
    monitor = monitored(net, {"head": ["WeightNorm", "InputMean"]})
    train(net, monitor, range(3, 6))
    before = monitor.get_output()["head"]
    monitor.run.close()
    del net
    after = monitor.get_output()["head"]
    assert before["WeightNorm"] == after["WeightNorm"]
    assert [*after["InputMean"]] == [3, 4, 5]
    monitor.clean_mem()
    assert monitor.get_output() == {"head": {"WeightNorm": {}, "InputMean": {}}}


@pytest.mark.parametrize("schedule", ["linear(2,0)", "linear(1,0)", "linear(3,1)"])
@pytest.mark.parametrize("every", [1, 4, 10])
def test_a_loop_that_counts_its_calls_of_track_has_its_schedules_by_that_count(
    net: Net, monitored: Monitored, every: int, schedule: str
) -> None:
    monitor = monitored(net, {"body.first": [["WeightNorm", schedule]]})
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    tracked: list[int] = []
    for step in range(6 * every):
        net(batch(step)).square().mean().backward()
        if step % every == 0:
            monitor.track(len(tracked))
            tracked.append(step)
        optimizer.step()
    interval, offset = map(int, schedule[7:-1].split(","))
    due = range(offset, 6, interval)
    wanted = norms(net.weights)
    assert monitor.get_output()["body.first"]["WeightNorm"] == {
        number: pytest.approx(wanted[tracked[number]], rel=1e-6) for number in due
    }


def test_a_due_number_that_nobody_could_expect_is_told_of_once(
    net: Net, monitored: Monitored
) -> None:
    monitor = monitored(net, {"body.first": [["WeightNorm", "linear(100,50)"]]})
    train(net, monitor, range(3))
    with pytest.warns(RecordWarning, match=r"track\(50\): .* was not measured"):
        train(net, monitor, [50])
    train(net, monitor, [51, 250])


def test_a_negative_number_is_refused(net: Net, monitored: Monitored) -> None:
    with pytest.raises(ValueError, match=r"track\(-1\): a number from 0 is expected"):
        monitored(net, {"head": ["WeightNorm"]}).track(-1)


def test_a_loop_that_updates_nothing_is_told_why_there_is_no_output(
    net: Net, monitored: Monitored
) -> None:
    """As in Taiyi's README, which has no optimizer."""
    monitor = monitored(net, {"head": ["WeightNorm"]})
    net(batch(0)).square().mean().backward()
    monitor.track(0)
    net(batch(1)).square().mean().backward()
    with pytest.warns(RecordWarning, match=r"track\(1\): no optimizer .* monitor\.run\.step\(\)"):
        monitor.track(1)
    net(batch(2)).square().mean().backward()
    monitor.track(2)
    with pytest.warns(RecordWarning, match=r"get_output\(\): no optimizer"):
        assert monitor.get_output() == {"head": {"WeightNorm": {}}}
