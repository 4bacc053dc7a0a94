"""Batches without end, for several readers, gone on with anywhere."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from notebook_probe.errors import ParamError
from notebook_probe.experiment.building.stream import Reader, Stream

SEVEN = [{"x": i} for i in range(7)]


def read(reader: Reader, n: int) -> list[int]:
    return [next(reader)["x"] for _ in range(n)]


@given(st.lists(st.integers(0, 2), max_size=60))
def test_every_reader_gets_every_batch_in_whatever_order_they_read(turns: list[int]) -> None:
    stream = Stream(SEVEN)
    readers = [stream.reader() for _ in range(3)]
    for i in turns:
        expected = readers[i].number % 7
        assert next(readers[i])["x"] == expected


@given(st.lists(st.integers(0, 1), max_size=40), st.integers(0, 20))
def test_readers_go_on_where_their_states_were_taken(turns: list[int], n: int) -> None:
    stream = Stream(SEVEN)
    one, other = stream.reader(), stream.reader()
    for i in turns:
        next((one, other)[i])
    states = [one.state_dict(), other.state_dict()]
    expected = [read(one, n), read(other, n)]
    again = Stream(SEVEN)
    readers = [again.reader(), again.reader()]
    for reader, state in zip(readers, states, strict=True):
        reader.load_state_dict(state)
    assert [read(reader, n) for reader in readers] == expected


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 15))
def test_a_shuffled_loader_goes_on_amid_a_pass(n: int) -> None:
    def reader() -> Reader:
        torch.manual_seed(5)
        rows: Any = [{"x": torch.tensor(i)} for i in range(6)]
        return Stream(DataLoader(rows, batch_size=1, shuffle=True)).reader()

    whole = reader()
    expected = read(whole, 20)
    stopped = reader()
    read(stopped, n)
    state, generator = stopped.state_dict(), torch.get_rng_state()
    torch.manual_seed(99)
    other = reader()
    torch.set_rng_state(generator)
    other.load_state_dict(state)
    assert read(other, 20 - n) == expected[n:]


def test_looking_at_the_first_batch_takes_nothing_away() -> None:
    stream = Stream(SEVEN)
    reader = stream.reader()
    assert stream.first() == {"x": 0}
    state = reader.state_dict()
    assert read(reader, 3) == [0, 1, 2]
    reader.load_state_dict(state)
    assert read(reader, 3) == [0, 1, 2]


def test_what_all_have_read_is_forgotten_and_a_closed_reader_holds_nothing() -> None:
    stream = Stream(SEVEN)
    slow, fast = stream.reader(), stream.reader()
    read(fast, 50)
    assert len(stream._waiting) == 50
    slow.close()
    assert len(stream._waiting) == 0


def test_one_of_several_goes_back_and_the_others_stay_where_they_are() -> None:
    stream = Stream(SEVEN)
    one, other = stream.reader(), stream.reader()
    state = one.state_dict()
    read(one, 5), read(other, 4)
    one.load_state_dict(state)
    assert (read(one, 3), read(other, 3)) == ([0, 1, 2], [4, 5, 6])


def test_arrays_may_be_batches() -> None:
    reader = Stream([{"x": np.arange(3)}]).reader()
    assert next(reader)["x"].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("data", "error"), [([], "the data is empty"), ([(1, 2)], "a batch is expected to be a dict")]
)
def test_data_without_dicts_is_refused(data: list[Any], error: str) -> None:
    with pytest.raises(ParamError, match=rf"^train_params\['data_params'\]: {error}"):
        next(Stream(data).reader())
