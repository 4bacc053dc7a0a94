"""Runs in a terminal: asked, shown, compared, taken away, marked and cleaned up."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

import notebook_probe as nbp
from notebook_probe.alerts.alert import ALERT
from notebook_probe.command_line import main
from notebook_probe.command_line.main import COMMANDS
from notebook_probe.explorer.saved_views import ViewFile, ViewSettings
from notebook_probe.home import HOME
from notebook_probe.record import RecordWriter
from notebook_probe.record.format.source import ModuleRow, Variable
from tests.command_line.conftest import Said, train

ASK = [sys.executable, "-m", "notebook_probe"]


def test_runs_that_meet_a_condition_are_a_sorted_table(said: Said) -> None:
    code, out, err = said(
        "runs", "--where", "params.lr < 1e-2", "--sort", "best.eval_accuracy", "--descending"
    )
    assert (code, err) == (0, "")
    head, *rows = out.splitlines()
    assert head.startswith("run ")
    assert [row.split()[0] for row in rows] == ["slow", "fine"]
    assert said("runs", "--where", "params.lr > 1")[1] == "no runs\n"
    assert len(said("runs", "--sort", "params.lr", "--limit", "1")[1].splitlines()) == 2


def test_columns_are_chosen_by_name_alias_and_pattern(said: Said) -> None:
    _, out, _ = said("runs", "--columns", "params.lr, best.*", "--sort", "config.lr")
    assert out.splitlines()[0].split() == ["run", "config.lr", "best.loss", "best.eval_accuracy"]
    assert out.splitlines()[1].split()[:2] == ["slow", "0.0001"]


def test_a_table_fits_the_terminal_and_says_what_it_lacks(
    said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    for columns in (30, 50, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        _, out, _ = said("runs")
        *table, last = out.splitlines()
        assert max(map(len, table)) <= columns
        assert ("more than fit" in last) == (columns < 60)
    assert "config.lr" in table[0]


def test_json_and_csv_are_what_other_programs_read(said: Said) -> None:
    _, out, _ = said("runs", "--json", "--columns", "config.lr,tags", "--sort", "config.lr")
    rows = json.loads(out)
    assert [row["config.lr"] for row in rows] == [1e-4, 1e-3, 1e-2]
    assert [*rows[0]] == ["run", "name", "config.lr", "tags"]
    _, out, _ = said("runs", "--csv", "--sort", "config.lr", "--limit", "2")
    found = [*csv.DictReader(io.StringIO(out))]
    assert [row["config.lr"] for row in found] == ["0.0001", "0.001"]


def test_json_of_runs_is_short_by_default(said: Said) -> None:
    rows = json.loads(said("runs", "--json", "--sort", "config.lr")[1])
    head = said("runs", "--sort", "config.lr")[1].splitlines()[0].split()
    assert {*rows[0]} <= {
        "run",
        "name",
        *json.loads(said("runs", "--json", "--columns", "*")[1])[0],
    }
    assert {*head} <= {*rows[0]}
    assert None not in rows[0].values()
    assert not [name for name in rows[0] if name.startswith(("packages.", "git."))]
    assert "packages.torch" in json.loads(said("runs", "--json", "--columns", "*")[1])[0]


def test_a_run_is_shown_by_place_name_or_id(said: Said, lab: Path) -> None:
    place = str(lab / "fine.zarr")
    run_id = json.loads(said("show", place, "--json")[1])["run_id"]
    shown = {said("show", word)[1] for word in (place, "fine", run_id[:8])}
    assert len(shown) == 1
    (out,) = shown
    for told in ("fine", place, "config.lr", "0.001", "finished", "loss.last"):
        assert told in out


def test_two_runs_are_compared_by_settings_results_and_modules(said: Said) -> None:
    code, out, err = said("compare", "slow", "fast", "--quantity", "grad_norm")
    assert (code, err) == (0, "")
    assert out.splitlines()[0].split() == ["settings", "slow", "fast"]
    assert "config.lr  0.0001  0.01" in out
    assert "config.depth" not in out
    assert "loss.last" in out
    assert "Differs from slow at step" in out
    told = json.loads(said("compare", "slow", "fast", "--quantity", "grad_norm", "--json")[1])
    assert told["differing"]["config.lr"] == [1e-4, 1e-2]
    assert {one["module"] for one in told["parting"]["modules"]} <= {"0", "2"}


def recorded(place: Path, norms: dict[str, list[float]], kind: str = "") -> str:
    """A record of one module, of which these quantities are measured."""
    rows = [ModuleRow("m", kind, 2, 2, -1)] if kind else []
    with RecordWriter(place, title=place.stem, modules=rows) as writer:
        stream = writer.stream("every_1")
        stream.extend(["m"], [Variable(name) for name in norms])
        for step, row in enumerate(zip(*norms.values(), strict=True)):
            stream.record(step, 1000 * step, np.array(row, np.float32)[:, None])
    return str(place)


def test_a_damaged_quantity_is_named_and_the_others_are_compared(
    said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOME, str(tmp_path / "home"))
    norms = {"grad_norm": [1.0] * 40, "weight_norm": [1.0] * 12 + [9.0] * 28}
    one = recorded(tmp_path / "one.zarr", norms)
    other = recorded(tmp_path / "other.zarr", norms | {"weight_norm": [1.0] * 40})
    stream = Path(other) / "scalars/every_1"
    for name in ("grad_norm", "weight_norm"):
        (stream / name / "c/0/0").write_bytes(b"garbage" * 9)
        code, out, _ = said("compare", one, other)
        *lines, last = out.splitlines()
        assert code == 0
        why = f"{name} is not compared: cannot read {stream}/{name}/c/0/0:"
        assert last.startswith(why)
        assert ("compared by weight_norm" in lines) == (name == "grad_norm")
    found = json.loads(said("compare", one, other, "--json")[1])["parting"]
    assert found["unread"].keys() == norms.keys()
    assert found["text"].startswith("grad_norm is not compared: cannot read")


def test_all_usual_quantities_are_asked_and_the_earliest_is_told(
    said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOME, str(tmp_path / "home"))
    calm = {"grad_norm": [1.0] * 40, "weight_norm": [1.0] * 40}
    wild = {"grad_norm": [1.0] * 40, "weight_norm": [1.0] * 12 + [9.0] * 28}
    one, other = recorded(tmp_path / "calm.zarr", calm), recorded(tmp_path / "wild.zarr", wild)
    out = said("compare", one, other)[1].splitlines()
    assert "Differs from calm at step 12: m · weight_norm ×9.0" in out
    assert out[-1] == "compared by weight_norm, grad_norm"
    told = json.loads(said("compare", one, other, "--json")[1])["parting"]
    assert told["text"] in out
    assert [one["quantity"] for one in told["asked"]] == ["weight_norm", "grad_norm"]
    assert told["modules"] == [
        {
            "module": "m",
            "step": 12,
            "there": "×9.0",
            "now": "×9.0",
            "there_factor": pytest.approx(9.0),
            "now_factor": pytest.approx(9.0),
            "rows": 28,
            "rows_wanted": 10,
        }
    ]
    models = [recorded(tmp_path / kind, calm, kind=kind) for kind in ("Linear", "Conv2d")]
    assert "Conv2d compared with Linear: Linear, here Conv2d" in said("compare", *models)[1]
    told = json.loads(said("compare", *models, "--json")[1])
    assert told["model"] == "Linear, here Conv2d"
    same = said("compare", one, one)[1].splitlines()
    assert json.loads(said("compare", one, one, "--json")[1])["model"] == ""
    assert same[-2:] == ["They stay within ×2 at m", "compared by grad_norm, weight_norm"]


def test_a_run_as_an_object_has_the_sentences_that_its_text_has(
    said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOME, str(tmp_path / "home"))
    place = recorded(tmp_path / "lost.zarr", {"nonfinite_fraction": [0.0] * 5 + [0.5] * 15})
    found = nbp.open_run(place).find_alerts()
    with RecordWriter(tmp_path / "lost.zarr", title="lost", modules=[], resume=True) as writer:
        for alert in found:
            writer.event(alert.step, ALERT, alert.text, alert.detail)
    assert found
    told = json.loads(said("show", place, "--json")[1])["found"]
    shown = said("show", place)[1].splitlines()
    sentences = json.loads(said("show", place, "--json")[1])["sentences"]
    assert sentences
    assert {*sentences} <= {*shown}
    assert [(one["rule"], one["step"], one["text"]) for one in told] == [
        (one.rule, one.step, one.text) for one in nbp.open_run(place).alerts
    ]
    assert told[0]["modules"] == ["m"]


def test_runs_that_nobody_named_are_called_as_their_table_calls_them(
    said: Said, lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOME, str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "300")
    for stem, lr in (("first", 1e-3), ("second", 1e-2)):
        train(tmp_path / f"{stem}.zarr", lr, "Sequential")

    def called() -> set[str]:
        return {row.split()[0] for row in said("runs")[1].splitlines()[1:]}

    assert called() == {"first", "second"}
    assert f"run          {tmp_path / 'first.zarr'}\n" in said("show", "first")[1]
    assert said("compare", "first", "second")[1].splitlines()[0].split()[1:] == ["first", "second"]
    assert "close: 'second'" in said("show", "secnd")[2]
    train(tmp_path / "b" / "first.zarr", 1e-1, "Sequential")
    newest = "b/first"
    assert called() == {newest, f"{tmp_path.name}/first", "second"}
    assert f"run          {tmp_path / 'b' / 'first.zarr'}\n" in said("show", newest)[1]
    assert "2 runs are called 'first'; name a place: " in said("show", "first")[2]
    assert "3 runs are called 'Sequential'; name a place" in said("show", "Sequential")[2]


def test_what_is_not_asked_for_is_a_usual_quantity(said: Said) -> None:
    assert "grad_norm" in said("compare", "slow", "fast")[1]
    assert "the same settings" in said("compare", "slow", "slow")[1]


def test_runs_are_exported_as_rows_or_one_as_a_record(said: Said, tmp_path: Path) -> None:
    table = tmp_path / "runs.csv"
    assert said("export", "slow", "fast", "--to", str(table)) == (0, f"{table}\n", "")
    with table.open(newline="") as file:
        assert [row["name"] for row in csv.DictReader(file)] == ["slow", "fast"]
    assert said("export", "slow", "--to", str(tmp_path / "a.json"))[0] == 0
    assert json.loads((tmp_path / "a.json").read_text())[0]["config.depth"] == 2
    assert said("export", "slow", "--to", str(tmp_path / "slow.zip"))[0] == 0
    assert nbp.open_run(tmp_path / "slow.zip").finished
    assert "zarr.json" in zipfile.ZipFile(tmp_path / "slow.zip").namelist()
    assert said("export", "slow", "--to", str(tmp_path / "slow.nc"))[0] == 0
    code, _, err = said("export", "slow", "--to", str(table))
    assert (code, "exists already" in err) == (2, True)
    assert said("export", "slow", "--to", str(table), "--overwrite")[0] == 0


def test_the_panel_of_a_run_is_exported_as_a_page_that_shows_a_saved_view(
    said: Said, tmp_path: Path
) -> None:
    page = tmp_path / "slow.html"
    assert said("export", "slow", "--to", str(page)) == (0, f"{page}\n", "")
    assert "<html" in page.read_text(encoding="utf-8")[:200]
    assert "exists already" in said("export", "slow", "--to", str(page))[2]
    given = "export", "slow", "--to", str(tmp_path / "other.html"), "--view", "mine"
    code, _, err = said(*given)
    assert (code, "mine" in err, "\n" in err.strip()) == (2, True, False)
    assert not (tmp_path / "other.html").exists()
    recorded = json.loads(said("show", "slow", "--json")[1])["run"]
    ViewFile.of(nbp.open_run(recorded)).save("mine", ViewSettings(home="loss"))
    assert said(*given)[0] == 0


def test_runs_are_tagged_noted_and_put_aside(said: Said) -> None:
    assert said("tag", "fine", "good", "paper")[1].endswith(": good, paper\n")
    assert said("tag", "fine", "paper", "--remove")[1].endswith(": good\n")
    assert said("note", "fine", "the one")[1].endswith(": good; the one\n")
    _, out, _ = said("runs", "--where", "tags has 'good' and note has 'one'", "--json")
    assert [row["name"] for row in json.loads(out)] == ["fine"]
    assert said("archive", "fine", "slow")[0] == 0
    assert [row["name"] for row in json.loads(said("runs", "--json")[1])] == ["fast"]
    assert len(json.loads(said("runs", "--archived", "--json")[1])) == 3
    assert said("restore", "fine", "slow")[0] == 0
    assert len(json.loads(said("runs", "--json")[1])) == 3


def test_a_clean_up_shows_and_deletes_only_when_told(said: Said, lab: Path) -> None:
    train(lab / "spoiled.zarr", 10.0, "spoiled")
    _, out, _ = said("clean-up", "--where", "params.lr > 1")
    assert out.startswith("1 run would be deleted, ")
    assert "nothing is deleted yet" in out
    assert (lab / "spoiled.zarr").exists()
    _, out, _ = said("clean-up", "--where", "params.lr > 1", "--delete")
    assert "1 run deleted" in out
    assert not (lab / "spoiled.zarr").exists()
    assert len(json.loads(said("runs", "--json")[1])) == 3


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["runs", "--where", "lr <<"], "'<' means nothing here"),
        (["runs", "--where", "params.lrr < 1"], "close: 'config.lr'"),
        (["runs", "--sort", "best.eval_acuracy"], "close: 'best.eval_accuracy'"),
        (["runs", "--columns", "config.lrr"], "close: 'config.lr'"),
        (["runs", "--sort", "lrr"], "no run has 'lrr'; close: 'config.lr'"),
        (["runs", "--limit", "three"], "'three'; a whole number from 0"),
        (["runs", "--limit", "-1"], "'-1'; a whole number from 0"),
        (["runs", "no_such_folder"], "there is no folder no_such_folder"),
        (["show", "no_such/a.zarr"], "no record at no_such/a.zarr: there is no folder"),
        (["runs", "--json", "--csv"], "not allowed with argument"),
        (["show", "fime"], "no run 'fime', neither a place, a name nor an id; close: 'fine'"),
        (["show", "."], "no record at ."),
        (["show", ""], "'' names no run; allowed: its location, name, or first characters of an"),
        (["explain", "slow", "--against", ""], "error: '' names no run"),
        (["explain", "slow", "--against", "."], "error: reference=['.']: no record at ."),
        (["show"], "required: RUN"),
        (["compare", "slow", "fast", "--quantity", "grad_norn"], "close: 'grad_norm'"),
        (["compare", "slow", "fast", "--by", "moon"], "moon"),
        (
            ["export", "slow", "--to", "a.txt"],
            "--to='a.txt'; allowed: a file name that ends with .csv, .json, .zip, .nc or .html",
        ),
        (["export", "slow", "fast", "--to", "a.zip"], ".zip is of one run"),
        (["export", "slow", "--to", "a.nc", "--view", "mine"], "is no page; .html is allowed"),
        (["tag", "slow", " "], "a line of at most 100 characters"),
        (["clean-up", "--where", ""], "every run"),
        (["clean-up"], "--where"),
        (["rums"], "invalid choice: 'rums'; close: 'runs'"),
        (["alerts", "slow", "--fail-on", "sever"], "invalid choice: 'sever'; close: 'severe'"),
        (["show", "http://a/b"], "error: no scheme of a store 'http'; known: 's3'"),
        (["show", 5_000 * "x"], "error: File name too long: 'xxx"),
        (["export", "slow", "--to", "."], "a file name that ends with"),
        ([], "required: COMMAND"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_code_2(
    said: Said, words: list[str], says: str
) -> None:
    code, out, err = said(*words)
    assert (code, out) == (2, "")
    assert err.startswith("notebook_probe: error: ")
    assert len(err) < 4_200
    assert says in err
    assert err.count("\n") == 1


def test_a_path_that_is_misspelled_is_answered_by_its_folder(said: Said, lab: Path) -> None:
    for words in (["show"], ["explain"], ["series", "fc", "norm"]):
        code, _, err = said(words[0], str(lab / "fime.zarr"), *words[1:])
        assert code == 2
        assert f"no record at {lab}/fime.zarr in {lab}; close: 'fine.zarr'" in err
    assert "it contains " in said("show", str(lab))[2]


def test_a_file_that_exists_is_kept_unless_overwrite_is_given(said: Said, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("mine")
    code, _, err = said("export", "slow", "--to", str(file))
    assert (code, file.read_text()) == (2, "mine")
    assert "exists already; --overwrite replaces it" in err
    assert said("export", "slow", "--to", str(file), "--overwrite")[0] == 0


def test_packages_that_one_program_alone_has_loaded_are_no_setting(
    said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = ({"run": one, "packages.numpy": "2", "packages.torch": one} for one in "ab")
    rows = iter([first | {"packages.PIL": "13"}, second])
    monkeypatch.setattr("notebook_probe.command_line.compare.row_at", lambda _: next(rows))
    out = said("compare", "slow", "fast")[1]
    assert "packages.torch  a" in out
    assert "packages.PIL" not in out


def test_names_that_steer_a_terminal_are_harmless(said: Said, lab: Path) -> None:
    odd = "\x1b[31mred\n\x07\u202e"
    train(lab / "odd.zarr", 0.5, odd)
    for words in (
        ["runs"],
        ["show", str(lab / "odd.zarr")],
        ["compare", str(lab / "odd.zarr"), "slow"],
    ):
        _, out, _ = said(*words)
        assert not {"\x1b", "\x07", "\u202e"} & {*out}
    said("clean-up", "--where", "params.lr == 0.5", "--delete")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_what_it_does(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("usage: nbp ")


SCRIPT = """
import sys
sys.argv = ["notebook_probe", *sys.argv[1:]]
from notebook_probe.command_line import main
code = main()
print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
sys.exit(code)
"""


def test_it_is_a_program_without_torch_that_ends_quietly_with_its_reader(lab: Path) -> None:
    known = {**os.environ, "NOTEBOOK_PROBE_HOME": str(lab / "home")}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, "runs", "--csv"],
        capture_output=True,
        text=True,
        env=known,
        timeout=120,
        check=True,
    )
    assert not {"torch", "IPython", "matplotlib", "ipywidgets"} & {*done.stderr.split()}
    assert "slow" in done.stdout
    reading, writing = os.pipe()
    os.close(reading)
    quiet = subprocess.run(
        [*ASK, "runs"], stdout=writing, stderr=subprocess.PIPE, env=known, timeout=120, check=False
    )
    os.close(writing)
    assert (quiet.returncode, quiet.stderr) == (0, b"")


def test_the_version_is_that_of_the_package(said: Said) -> None:
    assert said("--version") == (0, f"notebook_probe {nbp.__version__}\n", "")


def test_the_console_script_is_this_program() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    (script,) = project["scripts"].items()
    assert script == ("nbp", "notebook_probe.command_line:main")
    assert EntryPoint("nbp", script[1], "console_scripts").load() is main
