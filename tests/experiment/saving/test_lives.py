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
from tests.experiment.saving.lives import Expected, life, place_of, saved_as
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
lives = st.lists(st.tuples(saves, moments, st.none() | moments), min_size=1, max_size=3)

FIRST: dict[str, Any] = {
    "save_metrics_freq": None,
    "save_valid_freq": 3,
    "save_filters_freq": 8,
    "cache_filters_freq": 2,
    "cache_max_num": 2,
    "save_initial_filters": True,
}
SECOND = {**FIRST, "save_filters_freq": 5, "cache_filters_freq": 3, "cache_max_num": 1}


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


@pytest.mark.slow
@given(lives=lives)
@settings(max_examples=12)
@example(lives=[(FIRST, 7, 6), (FIRST, 9, None), (SECOND, 14, 13), (SECOND, 16, None)])
def test_checkpoints_retention_and_ids_are_those_of_lists(
    lives: list[tuple[dict[str, Any], int, int | None]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        expected = Expected()
        for one in lives:
            check(Path(folder), expected, *one)


def check(
    folder: Path, expected: Expected, save: dict[str, Any], until: int, fails_at: int | None
) -> None:
    """Begin again, until so many updates are done or it fails."""
    before = expected.newest
    expected.lives(until, fails_at, save)
    if fails_at is not None and (before or 0) < fails_at <= until:
        with pytest.raises(HookError, match="the loss is none"):
            life(folder, until, fails_at=fails_at, **save)
    else:
        one = life(folder, until, **save)
        assert one.restored.step == (before or 0)
        assert one.restored.rule == (5 if before is None else 2)
        assert one.saver.record_ids == [f"first:{k}" for k in expected.ids]
        whole, data = loop_of("mlp", scheduler=None)
        whole.run_steps(cycle(data), one.loop.n_updates)
        states = [dict(loop.trainer.model.state_dict()) for loop in (one.loop, whole)]
        assert same_state(*states)
    place = place_of(folder, saved_as(**save))
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
