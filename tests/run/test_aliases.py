"""A quantity is found by its name in another system wherever one is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from torch import nn

import notebook_probe as nbp
from notebook_probe.alerts import Rule
from notebook_probe.figures import heat, lines, overview
from notebook_probe.opened import OF_LIVE_RUNS
from notebook_probe.run.attach.requests import Attach, Detach
from tests.models import floats, made, mlp, sgd, train
from tests.run.conftest import Watch

batch = floats(5, 4)
NAMES = {
    "InputSndNorm": "input_norm",
    "RankMe": "effective_rank",
    "OutputGradSndNorm": "output_grad_norm",
    "InputMean": "input_channel_mean",
    "activation_histogram": "output_histogram",
    "WeightParamJump": "sign_flip_count",
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> nbp.OpenedRun:
    model = made(mlp)
    place = tmp_path_factory.mktemp("runs") / "run.zarr"
    with nbp.watch(model, store=place, probes={"0": [*NAMES]}) as run:
        run.attach("", "InputSndNorm", phase="eval")
        train(model, sgd(model), batch, range(5))
        model.eval()(batch(7))
    return nbp.open_run(place)


@pytest.mark.parametrize(("alias", "name"), NAMES.items())
def test_series_tables_and_data_know_it(alias: str, name: str, recorded: nbp.OpenedRun) -> None:
    assert recorded.recorded_name(alias) == name
    found = recorded.series("0", alias)
    assert len(found) == 5 - (name == "sign_flip_count")
    assert found.identical(recorded.series("0", name))
    assert recorded.data[alias].identical(recorded.data[name])
    assert getattr(recorded.data, alias).identical(recorded.data[name])
    tables = recorded.to_dataframe(alias), recorded.to_dataframe(name)
    assert tables[0].equals(tables[1])
    assert set(tables[0]["quantity"]) == {name}


def test_thinned_and_exports_know_it(recorded: nbp.OpenedRun, tmp_path: Path) -> None:
    points = recorded.thinned("0", "InputSndNorm"), recorded.thinned("0", "input_norm")
    np.testing.assert_array_equal(points[0].y, points[1].y)
    paths = recorded.to_npy(tmp_path / "npy", "activation_histogram")
    assert {path.parent.name for path in paths} == {"output_histogram"}
    with xr.open_dataset(
        recorded.to_netcdf(tmp_path / "run.nc", "RankMe"), group="every_1"
    ) as stored:
        assert [*stored.data_vars] == ["effective_rank"]


def test_what_is_made_of_data_knows_it_too(recorded: nbp.OpenedRun) -> None:
    data = recorded.data
    assert [*data[["RankMe", "input_norm"]]] == ["effective_rank", "input_norm"]
    assert data.sel(module="0").load().RankMe.dims == ("step",)
    assert "RankMe" not in data, "it is no variable of its own"
    with pytest.raises(KeyError, match="RankYou"):
        data["RankYou"]
    with pytest.raises(AttributeError, match="RankYou"):
        _ = data.RankYou


def test_an_evaluation_is_known_by_its_alias(recorded: nbp.OpenedRun) -> None:
    assert recorded.series("", "eval_InputSndNorm").identical(
        recorded.series("", "eval_input_norm")
    )


def test_many_runs_and_plain_xarray_know_it(recorded: nbp.OpenedRun) -> None:
    study = nbp.open_runs([recorded.location, recorded.location])
    assert study["RankMe"].identical(study["effective_rank"])
    plain = xr.open_zarr(recorded.location, group="scalars/every_1", chunks=None)
    assert plain.effective_rank.attrs["aliases"] == "RankMe"


def test_figures_draw_it(recorded: nbp.OpenedRun) -> None:
    drawn = lines(recorded, [("0", "InputSndNorm")], colours={("0", "InputSndNorm"): 3})
    assert [text.get_text() for text in drawn.axes[0].texts] == [
        text.get_text() for text in lines(recorded, [("0", "input_norm")]).axes[0].texts
    ]
    assert heat(recorded, "RankMe").axes[0].get_title("left") == "effective_rank"
    overview(recorded, "RankMe", [("0", "InputSndNorm")])


def test_rules_find_it_and_tell_its_own_name(recorded: nbp.OpenedRun) -> None:
    def large(InputSndNorm: Any, input_norm: Any, most: float = 0.0) -> Any:
        return (InputSndNorm > most) & (input_norm == InputSndNorm)

    names = ("InputSndNorm", "input_norm")
    rule = Rule("test_large", large, names, {"most": 0.0}, "{InputSndNorm} is above {most}")
    found = recorded.find_alerts(rule)
    assert [alert.quantities for alert in found] == [("input_norm", "input_norm")]
    assert found[0].modules == ("0",)


def test_backfill_writes_into_the_series_that_is_there(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes={"0": ["input_norm"]})
    train(model, sgd(model), batch, range(3))
    run.backfill("0", "InputSndNorm", 1, 7.0)
    run.backfill("1", "RankMe", 1, 3.0)
    assert float(run.series("0", "input_norm").sel(step=1)) == 7.0
    run.close()
    opened = nbp.open_run(run.location)
    opened.backfill("0", "InputSndNorm", 2, 9.0)
    assert opened.series("0", "input_norm").values.tolist()[1:] == [7.0, 9.0]
    assert not {"InputSndNorm", "RankMe"} & {*map(str, opened.data.data_vars)}
    assert opened.series("1", "effective_rank").values.tolist() == [3.0]


@pytest.mark.slow
def test_backfill_of_an_opened_run_writes_what_the_alias_means(watch: Watch) -> None:
    model = made(mlp)
    with watch(model, probes={"0": ["input_norm"]}) as run:
        train(model, sgd(model), batch, range(3))
    opened = nbp.open_run(run.location)
    opened.backfill("1", "RankMe", [0, 2], [3.0, 4.0])
    opened.backfill("1", "effective_rank", 1, 5.0)
    opened.backfill("", "my_own", 1, 6.0)
    names = {*map(str, opened.data.data_vars)}
    assert {"effective_rank", "my_own"} <= names
    assert "RankMe" not in names
    for name in ("RankMe", "effective_rank"):
        assert opened.series("1", name).values.tolist() == [3.0, 5.0, 4.0]
        assert nbp.open_run(run.location).series("1", name).size == 3


def test_keep_bits_rounds_it(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes={"0": ["input_norm"]}, keep_bits={"InputSndNorm": 4, "loss": 3})
    train(model, sgd(model), batch, range(2))
    assert run.data.input_norm.attrs["keep_bits"] == 4


def test_detaching_and_clicks_know_it(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    run.controls.put(Attach(("0",), "InputSndNorm"))
    train(model, sgd(model), batch, range(2))
    assert [probe.quantity for probe in run.probes()] == ["input_norm"]
    ticket = run.controls.put(Detach(("0",), "InputSndNorm"))
    train(model, sgd(model), batch, range(1))
    assert (ticket.state, run.probes()) == ("applied", [])


def test_what_the_panel_looks_at_is_set_by_it(recorded: nbp.OpenedRun) -> None:
    explorer = recorded.explorer
    explorer.home, explorer.series = "RankMe", [("0", "InputSndNorm")]
    assert explorer.home == "effective_rank"
    assert [tuple(one) for one in explorer.series] == [("0", "input_norm")]
    explorer.close()


def test_a_quantity_or_an_action_of_a_live_run_that_is_no_attribute_says_where_it_is(
    recorded: nbp.OpenedRun,
) -> None:
    given: Any = recorded
    with pytest.raises(AttributeError, match=r"it is run\.data\.input_norm, or run\.series"):
        _ = given.input_norm
    with pytest.raises(AttributeError, match="it is of a run that trains in this process"):
        _ = given.status
    with pytest.raises(TypeError, match=r"Linear\(.*a name or a pattern as text is expected"):
        given.to_dataframe("input_norm", nn.Linear(2, 2))


def test_every_action_of_a_live_run_is_known_to_a_record() -> None:
    own = {name for name in dir(nbp.Run) if not name.startswith("_")} - {*dir(nbp.OpenedRun)}
    assert {*OF_LIVE_RUNS.split()} == own - {"location"}, "which a record has as a value"
