"""What is saved of a training, over its interruptions, is what lists kept by hand say."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from notebook_probe.errors import HookError
from notebook_probe.experiment.saving import read_units
from notebook_probe.experiment.saving.due import due
from notebook_probe.train.checkpoints.store import CheckpointStore
from tests.experiment.saving.lives import Expected, life, saved_as
from tests.train.checkpoints.kinds import loop_of, same_state

frequencies = st.none() | st.integers(1, 9)
saves = st.fixed_dictionaries(
    {
        "save_metrics_freq": frequencies,
        "save_valid_freq": frequencies,
        "save_filters_freq": frequencies,
        "cache_filters_freq": frequencies,
        "cache_max_num": st.integers(1, 3),
        "save_initial_filters": st.booleans(),
    }
)
moments = st.integers(1, 14)
ends = st.lists(st.tuples(moments, st.none() | moments), min_size=1, max_size=3)


@given(save=saves, k=st.integers(0, 10**6))
def test_a_unit_is_saved_when_any_of_the_four_frequencies_meets_it(
    save: dict[str, Any], k: int
) -> None:
    names = [name for name in save if name.endswith("_freq")]
    met = {name for name in names if k and save[name] and k / save[name] == k // save[name]}
    found = due(saved_as(**save), k)
    assert found.record == bool(met)
    assert found.permanent == ("save_filters_freq" in met)
    assert found.recent == ("cache_filters_freq" in met and "save_filters_freq" not in met)


@given(save=saves, ends=ends)
@settings(max_examples=12)
@example(
    save={
        "save_metrics_freq": None,
        "save_valid_freq": 3,
        "save_filters_freq": 8,
        "cache_filters_freq": 2,
        "cache_max_num": 2,
        "save_initial_filters": True,
    },
    ends=[(7, 6), (9, None), (14, 13)],
)
def test_checkpoints_retention_and_ids_are_those_of_lists(
    save: dict[str, Any], ends: list[tuple[int, int | None]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check(Path(folder), save, ends)


def check(folder: Path, save: dict[str, Any], ends: list[tuple[int, int | None]]) -> None:
    expected, place = Expected(), None
    for until, fails_at in ends:
        start = expected.newest or 0
        before = Expected(**vars(expected))
        expected.lives(until, fails_at, save)
        if fails_at is not None and start < fails_at <= until:
            with pytest.raises(HookError, match="the loss is none"):
                life(folder, until, fails_at=fails_at, **save)
            continue
        one = life(folder, until, **save)
        place = one.place
        assert one.restored.step == start
        assert one.restored.rule == (5 if before.newest is None else 2)
        assert one.saver.record_ids == [f"first:{k}" for k in expected.ids]
        whole, data = loop_of("mlp", scheduler=None)
        whole.run_steps(cycle(data), one.loop.n_updates)
        assert same_state(weights_of(one), dict(whole.trainer.model.state_dict()))
    if place is not None:
        kept = [
            [one.step for one in CheckpointStore(folder).saved()]
            for folder in (place.checkpoints, place.recent)
        ]
        assert kept == [expected.permanent, expected.recent]
        units = [unit.step for unit in read_units(place) if unit.saved_filters]
        assert units == sorted({*expected.permanent, *expected.recent})


class cycle:
    """A loader that is gone through again and again."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def __iter__(self) -> Any:
        while True:
            yield from self.loader


def weights_of(one: Any) -> dict[str, Any]:
    return dict(one.loop.trainer.model.state_dict())
