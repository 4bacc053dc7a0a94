"""What cannot be stored is refused where it is given, not at every later flush."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from notebook_probe.errors import QuantityError, RecordWriteError, UnknownNameError
from notebook_probe.record import RecordWriter, Variable, open_record
from notebook_probe.record.store.location import RemoteStore
from tests.record.build import GRAD, MODULES, fill, new_writer

WRONG: dict[str, tuple[Callable[[RecordWriter], Any], type[Exception], str]] = {
    "text of an event": (
        lambda writer: writer.event(1, "note", 3),  # type: ignore[arg-type]
        TypeError,
        "event: text=3; text is expected",
    ),
    "kind of an event": (
        lambda writer: writer.event(1, None, "x"),  # type: ignore[arg-type]
        TypeError,
        "event: kind=None; text is expected",
    ),
    "detail of an event": (
        lambda writer: writer.event(1, "note", "x", {"a": 1}),  # type: ignore[arg-type]
        TypeError,
        r"event: detail=\{'a': 1\}; text",
    ),
    "step of an event": (
        lambda writer: writer.event("1", "note", "x"),  # type: ignore[arg-type]
        TypeError,
        "cannot be interpreted as an integer",
    ),
    "module of a stream": (
        lambda writer: writer.stream("every_1").extend([0]),  # type: ignore[list-item]
        QuantityError,
        "module 0; its path as text",
    ),
    "units of a quantity": (
        lambda writer: writer.stream("every_1").extend([], [Variable("a", 3)]),  # type: ignore[arg-type]
        QuantityError,
        "quantity 'a': 3, where text",
    ),
    "attribute of a quantity": (
        lambda writer: writer.stream("every_1").extend(
            [],
            [Variable("a", attrs={"of": object()})],  # type: ignore[dict-item]
        ),
        QuantityError,
        "quantity 'a': <object object",
    ),
    "module of a series": (
        lambda writer: writer.source.series(0, "grad_norm"),  # type: ignore[arg-type]
        TypeError,
        "module 0; its path as text is expected, such as 'fc1'",
    ),
    "quantity of a series": (
        lambda writer: writer.source.series("conv1", 0),  # type: ignore[arg-type]
        UnknownNameError,
        "no quantity 0 is recorded; known: 'grad_norm'",
    ),
    "module of a picture": (
        lambda writer: writer.source.thinned(None, "grad_norm"),  # type: ignore[arg-type]
        TypeError,
        "module None; its path",
    ),
}


@pytest.mark.parametrize(("act", "error", "said"), WRONG.values(), ids=WRONG)
def test_what_is_no_text_is_refused_at_once_and_all_else_is_written(
    tmp_path: Path, act: Callable[[RecordWriter], Any], error: type[Exception], said: str
) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        writer.stream("every_1").extend(["conv1"], [GRAD])
        with pytest.raises(error, match=said):
            act(writer)
        fill(writer.stream("every_1"), range(3))
        assert writer.flush(60), writer.last_error
    assert open_record(tmp_path / "a.zarr").series("conv1", "grad_norm").size == 3


@pytest.mark.parametrize("keep_bits", [None, 10, ["grad_norm"]])
def test_bits_of_no_quantity_are_refused(tmp_path: Path, keep_bits: Any) -> None:
    with pytest.raises(ValueError, match=r"keep_bits=.*; bits by the name of a quantity, such as"):
        RecordWriter(tmp_path / "a.zarr", title="a", modules=MODULES, keep_bits=keep_bits)
    assert not (tmp_path / "a.zarr").exists()


def test_a_spool_in_a_folder_that_is_not_there_is_made(tmp_path: Path) -> None:
    from zarr.storage import MemoryStore

    for store in (f"memory://{tmp_path.name}", MemoryStore()):
        location = RemoteStore(store, spool=tmp_path / "not" / "there")
        RecordWriter(location, title="a", modules=MODULES).close()
    (tmp_path / "file").touch()
    location = RemoteStore(f"memory://{tmp_path.name}", spool=tmp_path / "file" / "spool")
    with pytest.raises(RecordWriteError, match=r"cannot make the spool in .*file/spool: Not a dir"):
        RecordWriter(location, title="a", modules=MODULES)


def test_rows_are_written_whatever_fails_in_what_is_asked_before_each_flush(tmp_path: Path) -> None:
    class Failing:
        def bring(self) -> None:
            raise RuntimeError("an alert's rule is broken")

    failing, writer = Failing(), new_writer(tmp_path / "a.zarr")
    writer.feed(failing.bring)
    writer.stream("every_1").extend(["conv1"], [GRAD])
    fill(writer.stream("every_1"), range(3))
    assert not writer.flush(60)
    assert "an alert's rule is broken" in writer.last_error
    assert open_record(tmp_path / "a.zarr").series("conv1", "grad_norm").size == 3
    with pytest.raises(RecordWriteError, match="all rows were written, but not all went well: Run"):
        writer.close()
