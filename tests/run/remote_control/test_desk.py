"""The desk under bad weather: floods, garbage, copies, other trainings, dead askers."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

import pytest
from torch import nn

import notebook_probe as nbp
from notebook_probe.catalogues.marks.record_files import StaysError, own_files
from notebook_probe.record.store.files import MAILBOX
from notebook_probe.run.attach.requests import Control, Set
from notebook_probe.run.remote_control import desk, mail_server, places, socket_server
from notebook_probe.run.remote_control.letters import (
    MOST_LETTER_BYTES,
    VERSION,
    Letter,
    PutRequest,
    letter_bytes,
    new_id,
    read_answer,
)
from notebook_probe.run.remote_control.lines import LineError, open_line
from notebook_probe.run.remote_control.places import place_of_record
from tests.models import sgd, train_step
from tests.run.conftest import Watch
from tests.run.loops import batch, training, wait_until
from tests.run.remote_control.conftest import Ask


def session_of(run: nbp.Run) -> str:
    announced = (Path(run.location) / MAILBOX / "run.json").read_text()
    session: str = json.loads(announced)["session"]
    return session


def path_of(run: nbp.Run) -> Path:
    return next(one for one in places.socket_paths(session_of(run)) if one.exists())


def letter(run: nbp.Run) -> bytes:
    place = place_of_record(run.location)
    pause = PutRequest(Control("resume"))
    return letter_bytes(Letter(VERSION, new_id(), session_of(run), place, "a test", pause))


def connected(run: nbp.Run) -> socket.socket:
    one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    one.settimeout(10)
    one.connect(str(path_of(run)))
    return one


def sent_until_dropped(peer: socket.socket, content: bytes) -> int:
    """Send until the other end hangs up; return the number of bytes."""
    n_sent = 0
    while n_sent < 100 * MOST_LETTER_BYTES:
        try:
            n_sent += peer.send(content)
        except (BrokenPipeError, ConnectionResetError):
            return n_sent
    raise AssertionError("it is not dropped")


def refusals(run: nbp.Run) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in run.events:
        if one.kind == desk.REMOTE and "refused" in json.loads(one.detail):
            for why, n in json.loads(one.detail)["refused"].items():
                found[why] = found.get(why, 0) + n
    return found


def test_garbage_is_refused_counted_and_noted_and_the_line_goes_on(
    watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes=None, control=True)
    with connected(run) as peer, peer.makefile("rb") as answers:
        peer.sendall(b"GET / HTTP/1.1\n\n{}\n" + b"\0" * 100 + b"\n")
        for _ in range(4):
            assert read_answer(answers.readline()).state == "refused"
        with training(run, model):
            peer.sendall(letter(run))
            states = [read_answer(answers.readline()).state for _ in range(2)]
    assert states == ["queued", "applied"]
    run.close()
    assert refusals(run) == {"malformed": 4}


def test_a_message_without_an_end_is_dropped_at_its_limit(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None, control=True)
    with connected(run) as peer:
        assert sent_until_dropped(peer, b"x" * 2**16) < 4 * MOST_LETTER_BYTES
    run.close()
    assert refusals(run) == {"malformed": 1}


def test_a_flood_is_refused_before_it_is_parsed(
    watch: Watch, model: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "PER_SECOND", 0.0)
    run = watch(model, probes=None, control=True)
    one = letter(run)
    with connected(run) as peer, peer.makefile("rb") as answers:
        peer.sendall(one * 300)
        found = [read_answer(answers.readline()) for _ in range(300)]
    assert sum(answer.state == "queued" for answer in found) == desk.BURST
    assert {answer.text for answer in found if answer.state == "refused"} == {
        "too many requests; try again in a second"
    }
    run.close()
    assert refusals(run) == {"too many": 300 - desk.BURST}


def is_served(run: nbp.Run) -> bool:
    with connected(run) as peer, suppress(ConnectionError):
        peer.sendall(b"\n")
        return bool(peer.recv(1000))
    return False


def test_many_connections_are_refused_and_the_first_ones_served(
    watch: Watch, model: nn.Module, ask: Ask
) -> None:
    run = watch(model, probes=None, control=True)
    peers = [connected(run) for _ in range(socket_server.MOST_CONNECTIONS)]
    for peer in peers:
        peer.sendall(b"\n")
        assert peer.recv(1000), "served"
    with connected(run) as late:
        assert late.recv(1000) == b"", "closed at once"
    for peer in peers:
        peer.close()
    while not is_served(run):  # until the server has heard that they are gone
        pass
    with training(run, model):
        answer = ask(run.location, Control("resume")).answer
    assert answer is not None
    assert answer.state == "applied"


def test_another_user_is_hung_up_on(
    watch: Watch, model: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = (os.getuid() + 1, "process 1")
    monkeypatch.setattr(socket_server, "_peer_of", lambda peer: other)
    with TemporaryDirectory(dir="/tmp") as own:  # trainings of other tests try whose sockets live
        monkeypatch.setattr(places, "_folders", lambda: [Path(own)])
        run = watch(model, probes=None, control=True)
        with connected(run) as peer:
            assert peer.recv(1000) == b""
        run.close()
    assert refusals(run) == {"of another user": 1}


@pytest.mark.slow
def test_a_peer_that_reads_no_answers_holds_nothing_up(
    watch: Watch, model: nn.Module, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_server, "MOST_ANSWER_BYTES", 10_000)
    monkeypatch.setattr(desk, "PER_SECOND", 1e9)
    run = watch(model, probes=None, control=True)
    with connected(run) as deaf:
        sent_until_dropped(deaf, b"{}\n" * 1000)
    with training(run, model):
        answer = ask(run.location, Control("resume")).answer
    assert answer is not None
    assert answer.state == "applied"


def test_who_asks_too_often_is_told_at_once(
    watch: Watch, model: nn.Module, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "BURST", 0)
    monkeypatch.setattr(desk, "PER_SECOND", 0.0)
    run = watch(model, probes=None, control=True)
    answer = ask(run.location, Control("resume")).answer
    assert answer is not None
    assert (answer.state, answer.text) == ("refused", "too many requests; try again in a second")


def test_what_a_killed_asker_asked_for_is_done_and_noted(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None, control=True)
    with connected(run) as peer:
        peer.sendall(letter(run))
        assert read_answer(peer.recv(1000)).state == "queued"
    train_step(model, sgd(model), batch(0))
    train_step(model, sgd(model), batch(0))
    wait_until(lambda: any("resume, asked by" in one.text for one in run.events))


@pytest.mark.parametrize("way", ["socket", "mailbox"])
def test_a_copy_of_the_record_does_not_reach_the_training(
    watch: Watch, model: nn.Module, way: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if way == "mailbox":
        request.getfixturevalue("only_mailbox")
    run = watch(model, probes=None, control=True)
    run.flush()
    copy = tmp_path / "copy.zarr"
    shutil.copytree(run.location, copy)
    with pytest.raises(LineError, match="no process trains this run"):
        open_line(copy, "a test")
    if way == "socket":  # even where somebody names the copy by force
        other = Letter(
            VERSION,
            new_id(),
            session_of(run),
            place_of_record(copy),
            "a",
            PutRequest(Control("stop")),
        )
        with connected(run) as peer:
            peer.sendall(letter_bytes(other))
            answer = read_answer(peer.recv(1000))
        assert (answer.state, answer.text) == ("refused", "this is for another training or a copy")


@pytest.mark.usefixtures("only_mailbox")
def test_letters_to_an_earlier_training_are_removed_unread(
    watch: Watch, model: nn.Module, tmp_path: Path, ask: Ask
) -> None:
    place = tmp_path / "again.zarr"
    watch(model, store=place, probes=None).close()
    box = place / MAILBOX / "in"
    box.mkdir(parents=True)
    stale = Letter(VERSION, new_id(), new_id(), "", "a test", PutRequest(Set("lr", 77.0)))
    (box / f"{stale.id}.json").write_bytes(letter_bytes(stale))
    (place / MAILBOX / "run.json").write_text("{")
    run = watch(model, store=place, probes=None, control=True)
    assert [*box.iterdir()] == []
    late = box / f"{stale.id}.json"
    whole = tmp_path / "letter"
    whole.write_bytes(letter_bytes(stale))
    whole.rename(late)  # as senders do: half of it would be malformed
    wait_until(lambda: not late.exists())
    run.close()
    assert refusals(run) == {"for another training": 1}


@pytest.mark.usefixtures("only_mailbox")
def test_a_mailbox_reads_nothing_that_is_not_a_small_file_of_its_owner(
    watch: Watch, model: nn.Module, tmp_path: Path, ask: Ask
) -> None:
    run = watch(model, probes=None, control=True)
    folder = Path(run.location) / MAILBOX
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700, "no other user can open it"
    secret = tmp_path / "secret.json"
    secret.write_bytes(letter(run))
    (folder / "in" / f"{new_id()}.json").symlink_to(secret)
    os.mkfifo(folder / "in" / f"{new_id()}.json")
    with (folder / "in" / f"{new_id()}.json").open("wb") as huge:
        huge.truncate(100 * MOST_LETTER_BYTES)
    (folder / "in" / "notes.txt").write_text("hello")
    (folder / "in" / "..json").write_text("{}")
    wait_until(lambda: not any((folder / "in").iterdir()))
    assert secret.exists()
    with training(run, model):
        assert ask(run.location, Control("resume")).answer is not None
    run.close()
    assert refusals(run) == {"malformed": 5}


@pytest.mark.usefixtures("only_mailbox")
def test_a_mailbox_reads_a_flood_in_parts(
    watch: Watch, model: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mail_server, "MOST_LETTERS", 10)
    monkeypatch.setattr(desk, "PER_SECOND", 0.0)
    run = watch(model, probes=None, control=True)
    box = Path(run.location) / MAILBOX / "in"
    for _ in range(130):
        (box / f"{new_id()}.json").write_bytes(b"{}")
    wait_until(lambda: not any(box.iterdir()))
    run.close()
    assert refusals(run) == {"malformed": 100, "too many": 30}


def test_what_a_killed_training_left_is_neither_packed_nor_in_the_way_of_a_clean_up(
    watch: Watch, model: nn.Module, tmp_path: Path
) -> None:
    run = watch(model, probes=None)
    run.close()
    folder = Path(run.location)
    for key in ("run.json", f"in/{new_id()}.json", f"out/{new_id()}.json"):
        (folder / MAILBOX / key).parent.mkdir(parents=True, exist_ok=True)
        (folder / MAILBOX / key).write_text("{}")
    assert len([one for one in own_files(folder) if MAILBOX in one.parts]) == 3
    nbp.open_run(folder).pack(tmp_path / "packed.zarr.zip")
    with ZipFile(tmp_path / "packed.zarr.zip") as packed:
        assert not any(MAILBOX in name for name in packed.namelist())
    (folder / MAILBOX / "thesis.tex").touch()
    with pytest.raises(StaysError, match="not of the record"):
        own_files(folder)


def test_an_answer_that_nobody_fetches_is_removed(
    watch: Watch, model: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "_folders", list)
    monkeypatch.setattr(mail_server, "READ_S", 0.01)
    monkeypatch.setattr(mail_server, "KEPT_S", 0.05)
    run = watch(model, probes=None, control=True)
    with training(run, model):
        line = open_line(run.location, "a test")
        key = new_id()
        line.send(PutRequest(Control("resume")), key)
        answer = Path(run.location) / MAILBOX / "out" / f"{key}.json"
        wait_until(lambda: any("resume, asked by" in one.text for one in run.events))
        wait_until(lambda: not answer.exists())


def test_a_socket_is_only_where_no_other_user_can_open_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = new_id()
    open_to_all, long = tmp_path / "open", tmp_path / ("x" * 100)
    open_to_all.mkdir(mode=0o755)
    open_to_all.chmod(0o755)
    link = tmp_path / "link"
    link.symlink_to(open_to_all)
    monkeypatch.setattr(places, "_folders", lambda: [open_to_all, link, long])
    assert places.new_socket_path(session) is None
    ours = tmp_path / "o"
    monkeypatch.setattr(places, "_folders", lambda: [open_to_all, long, ours])
    path = places.new_socket_path(session)
    if len(os.fsencode(ours)) + 22 <= places.LONGEST_PATH:
        assert path == ours / f"{session[:16]}.sock"
        assert stat.S_IMODE(ours.stat().st_mode) == 0o700
    else:
        assert path is None, "a path of more than 107 bytes is none for a socket"


def test_sockets_of_killed_trainings_are_removed_and_live_ones_stay(
    watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes=None, control=True)
    live = path_of(run)
    stale = live.with_name(f"{new_id()[:16]}.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
        dead.bind(str(stale))
    places.remove_stale_sockets(live.parent)
    assert (stale.exists(), live.exists()) == (False, True)


def test_a_clock_that_jumps_changes_nothing(
    watch: Watch, model: nn.Module, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = watch(model, probes=None, control=True)
    with training(run, model):
        monkeypatch.setattr("notebook_probe.run.remote_control.letters.time.time_ns", lambda: 7)
        answer = ask(run.location, Control("resume")).answer
    assert answer is not None
    assert answer.state == "applied"
