"""The runs beside one are listed when a view asks, and those that are chosen are kept in sight."""

from __future__ import annotations

import threading
from itertools import count
from pathlib import Path
from typing import Any

import torch

import notebook_probe as nbp
from notebook_probe.explorer.conversation import PanelSession
from notebook_probe.explorer.others.overlay import RunOverlay
from notebook_probe.explorer.parse import parse
from notebook_probe.explorer.parts.compare import Compare
from tests.explorer.others.records import model, train


class Talk:
    """A view that talks to the session of an opened record, or of a live run."""

    def __init__(self, source: Any, controls: Any = None) -> None:
        self.session = PanelSession(source, controls)
        self.sent: list[tuple[Any, list[memoryview]]] = []
        self.says(type="hello", view="x")

    @property
    def part(self) -> Compare:
        [part] = [one for one in self.session._parts._parts if isinstance(one, Compare)]
        return part

    def says(self, **message: Any) -> None:
        self.session.receive(parse({"v": 1, **message}))  # type: ignore[arg-type]

    def chooses(self, **fields: Any) -> None:
        self.says(**(self.session.look().message() | fields))

    def is_told(self, kind: str) -> list[tuple[Any, list[memoryview]]]:
        """What of this kind is news, once all that was to be read has been."""
        before = len(self.sent)
        self._publish()
        for _ in range(3):
            done = threading.Event()
            self.part._shelf.do(done.set)
            assert done.wait(60)
            self._publish()
        return [one for one in self.sent[before:] if one[0]["type"] == kind]

    def all_told(self, kind: str) -> list[tuple[Any, list[memoryview]]]:
        return [one for one in self.sent if one[0]["type"] == kind]

    def _publish(self) -> None:
        self.session.publish(
            lambda *message: self.sent.append(message), "pump", self.session.head()
        )


def test_the_folder_is_read_when_a_view_shows_the_list(folder: Path) -> None:
    own = train(folder / "own.zarr")
    train(folder / "a.zarr")
    talk = Talk(nbp.open_run(own))
    [(state, _)] = talk.is_told("compare")
    assert (state["folder"], state["listed"], state["runs"]) == ("runs", False, [])
    talk.says(type="list_runs")
    state, _ = talk.is_told("compare")[-1]
    assert state["listed"]
    assert [row["name"] for row in state["runs"]] == ["a"]
    assert talk.is_told("compare") == []


def test_at_most_four_others_are_chosen_and_the_ratio_is_to_one_of_them(folder: Path) -> None:
    talk = Talk(nbp.open_run(train(folder / "own.zarr")))
    runs = [str(folder / f"{name}.zarr") for name in "abcdea"]
    talk.chooses(others=runs, ratio_to=runs[4], apart=[0.5, 0], aligned="time", grouped=True)
    selection = talk.session.look()
    assert selection.others == tuple(runs[:4])
    assert (selection.ratio_to, selection.apart) == ("", (2.0, 10))
    assert (selection.aligned, selection.grouped) == ("time", True)
    talk.chooses(ratio_to=runs[1], apart=[3, 5])
    assert (talk.session.look().ratio_to, talk.session.look().apart) == (runs[1], (3.0, 5))


def test_a_run_that_is_chosen_is_drawn_beside_this_one_and_for_every_view(folder: Path) -> None:
    own, other = train(folder / "own.zarr"), str(train(folder / "a.zarr"))
    talk = Talk(nbp.open_run(own))
    talk.chooses(series=[["(root)", "loss"]], others=[other, str(folder / "gone.zarr")])
    message, _ = talk.is_told("beside")[-1]
    assert [line["run"] for line in message["series"]] == [other]
    state = next(told for told, _ in reversed(talk.sent) if told["type"] == "compare")
    assert "no record at" in state["refused"][str(folder / "gone.zarr")]
    assert {row["run"] for row in state["runs"]} == {other, str(folder / "gone.zarr")}
    talk.says(type="hello", view="y")
    assert len(talk.is_told("beside")) == 1
    assert len(talk.is_told("beside")) == 0


def test_a_live_run_is_compared_while_it_trains_and_grows_into_the_picture(folder: Path) -> None:
    other = str(train(folder / "a.zarr", [1.0] * 8, lr=1e-3))
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=3e-3)
    inputs = torch.randn(8, 2, generator=torch.Generator().manual_seed(1))
    with nbp.watch(net, store=folder / "own.zarr", probes=None) as run:
        run.attach("Linear", "update_ratio", "every(1)")
        talk = Talk(run, run.controls)
        clock = count(step=100).__next__  # time enough between two looks
        talk.part._beside = RunOverlay(run, talk.part._shelf, clock)

        def goes_on(n: int) -> None:
            for _ in range(n):
                optimizer.zero_grad()
                net(inputs).square().mean().backward()
                run.log(loss=1.0)
                optimizer.step()

        goes_on(4)
        talk.chooses(home="update_ratio", others=[other], ratio_to=other, apart=[2.0, 3])
        assert talk.is_told("ratio")[-1][0]["last_step"] <= 4
        assert talk.all_told("parting")[-1][0]["text"].startswith("Differs from a at step 0: ")
        goes_on(4)
        assert talk.is_told("ratio")[-1][0]["last_step"] >= 6


def test_a_file_of_a_run_beside_others_has_those_too(folder: Path) -> None:
    talk = Talk(nbp.open_run(train(folder / "own.zarr")))
    talk.chooses(home="update_ratio", others=[str(train(folder / "a.zarr"))])
    talk.says(type="export", kind="csv")
    talk.session._exports._worker.do((made := threading.Event()).set)
    talk.is_told("exported")
    assert made.wait(60)
    talk.is_told("exported")
    [(message, [content])] = talk.all_told("exported")
    assert "note" not in message
    assert bytes(content).startswith(b"run,module,quantity,step,time,value\nown,")


def test_compared_runs_become_the_references_of_a_run_that_trains(folder: Path) -> None:
    train(folder / "good.zarr")
    watched = model()
    with nbp.watch(watched, store=folder / "own.zarr") as run:
        talk = Talk(run, run.controls)
        good = str(folder / "good.zarr")
        talk.chooses(others=[good])
        before = talk.is_told("compare")[-1]
        assert (before[0]["references"], before[0]["are_references"]) == ([], False)
        talk.says(type="compare_with", id="1", runs=[good])
        run._parts.gate.do_waiting(0)
        after = talk.is_told("compare")[-1]
        assert (after[0]["references"], after[0]["are_references"]) == (["good"], True)
        talk.chooses(others=[])
        assert talk.is_told("compare")[-1][0]["are_references"] is False
