"""Reading what is being written, from the same process."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from notebook_probe.record import open_record
from notebook_probe.record.write.streams import stream as stream_module
from tests.record.build import GRAD, WEIGHT, fill, new_writer, row


def test_rows_are_there_before_any_flush(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        seen = [writer.source.revision]
        stream = writer.stream("every_1")
        stream.extend(["conv1"], [GRAD])
        seen.append(writer.source.revision)
        fill(stream, range(3))
        seen.append(writer.source.revision)
        writer.event(1, "attach", "x")
        seen.append(writer.source.revision)
        assert seen == sorted(set(seen))
        assert writer.published_rows("every_1") == 0
        assert writer.source.streams["every_1"].n_rows == 3
        assert writer.source.data.grad_norm.sel(module="conv1").values.tolist() == [0, 1, 2]


def test_rows_that_left_the_memory_are_read_from_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_module, "RECENT_BYTES", 0)
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = writer.stream("every_1")
        stream.extend(["conv1"], [GRAD])
        for start in range(0, 30_000, 10_000):
            fill(stream, range(start, start + 10_000))
            assert writer.flush(60)
        stream.extend(["fc"], [WEIGHT])
        fill(stream, range(30_000, 30_010))
        assert stream.rows().start > 20_000
        view = writer.source.streams["every_1"]
        assert np.array_equal(view.steps(), np.arange(30_010))
        assert np.array_equal(view.times() - view.times(0, 1), np.arange(30_010))
        assert np.array_equal(view.values("grad_norm")[:, 0], np.arange(30_010))
        assert view.values("weight_norm", 29_999, 30_001, ["fc"]).tolist()[1] == [31_100]
        assert np.isnan(view.values("weight_norm", 5, 30_000)).all()
        assert view.values("grad_norm", 10, 12, ["conv1"]).tolist() == [[10], [11]]
        assert writer.source.series("conv1", "grad_norm").size == 30_010


def test_streams_are_made_anew_only_when_columns_have_come(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = writer.stream("every_1")
        stream.extend(["conv1"], [GRAD])
        fill(stream, range(3))
        before = writer.source.streams["every_1"]
        fill(stream, range(3, 5))
        assert writer.source.streams["every_1"] is before
        assert before.n_rows == 5
        stream.extend(["fc"], [WEIGHT])
        other = writer.stream("every_2")
        other.extend(["fc"], [GRAD])
        now = writer.source.streams
        assert [*now] == ["every_1", "every_2"]
        assert now["every_1"].modules == ("conv1", "fc")


def test_a_dict_of_streams_belongs_to_who_asked_for_it(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        writer.stream("every_1").extend(["conv1"], [GRAD])
        dict.clear(writer.source.streams)  # type: ignore[arg-type]
        assert [*writer.source.streams] == ["every_1"]


@pytest.mark.slow
def test_a_reader_in_another_thread_sees_whole_rows_only(tmp_path: Path) -> None:
    """The training thread appends and widens, the writer's thread flushes, a third one reads."""
    with new_writer(tmp_path / "a.zarr", flush_s=0.01) as writer:
        stream = writer.stream("every_1")
        stream.extend(["m0"], [GRAD])
        wrong: list[str] = []
        rounds = 0
        done = threading.Event()

        def read() -> None:
            nonlocal rounds
            seen = 0
            while not done.is_set():
                view = writer.source.streams["every_1"]
                n, width = view.n_rows, len(view.modules)
                steps, values = view.steps(seen, n), view.values("grad_norm", seen, n)
                if steps.tolist() != list(range(seen, n)):
                    wrong.append(f"steps {seen}:{n}")
                expected = steps[:, None] + 100 * np.arange(values.shape[1])
                known = ~np.isnan(values)
                if not known[:, 0].all() or not (values == expected)[known].all():
                    wrong.append(f"values {seen}:{n}")
                if values.shape[1] < width:
                    wrong.append("fewer columns than modules")
                seen = max(0, n - 50)
                rounds += 1

        reader = threading.Thread(target=read)
        reader.start()
        step = 0
        while step < 20_000 or (rounds < 5 and reader.is_alive()):
            if step % 4_000 == 0 and step < 20_000:
                stream.extend([f"m{step // 4_000}"])
            assert stream.record(step, 0, row(stream, step))
            step += 1
        done.set()
        reader.join(60)
        assert wrong == []
        assert rounds >= 5
    assert open_record(tmp_path / "a.zarr").streams["every_1"].n_rows == step


def test_asking_for_what_is_new_touches_no_file(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = writer.stream("every_1")
        stream.extend(["conv1"], [GRAD])
        fill(stream, range(100))
        assert writer.flush(60)
        fill(stream, range(100, 103))
        (tmp_path / "a.zarr").rename(tmp_path / "away")
        view = writer.source.streams["every_1"]
        assert view.values("grad_norm", 98).tolist() == [[98], [99], [100], [101], [102]]
        (tmp_path / "away").rename(tmp_path / "a.zarr")
