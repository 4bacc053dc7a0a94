"""``nbp explain``, ``alerts`` and ``tree``: findings, with the numbers of the record."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

import notebook_probe as nbp
from notebook_probe.alerts.alert import rule_off
from notebook_probe.command_line.reading.printing import tokens
from notebook_probe.record import RecordWriter
from notebook_probe.record.format.source import ModuleRow, Variable
from tests.command_line.reading.build import GONE, MODULES, PEAK, QUIET, SPIKE, build, losses, norms
from tests.command_line.reading.conftest import Answered, Asked


def test_an_explanation_has_the_causes_of_the_run_with_evidence(
    answer: Answered, known: str
) -> None:
    told, run = answer("explain", known), nbp.open_run(known)
    assert told["verdict"] == run.explain().title
    assert [one["alert"]["rule"] for one in told["causes"]] == ["loss_spike", "nonfinite_output"]
    spike, gone = told["causes"]
    assert spike["evidence"] == [
        {
            "module": "(root)",
            "quantity": "loss",
            "before": [PEAK - 1, float(str(losses()[PEAK - 1]))],
            "after": [PEAK, float(str(losses()[PEAK]))],
        }
    ]
    (evidence,) = gone["evidence"]
    assert evidence["before"] == [299, float(str(norms()[299, 1]))]
    assert evidence["after"] == [300, "nan"]
    assert gone["alert"]["began"] == [299, 300]
    assert [one["rule"] for one in told["remarks"]] == ["unused"]
    assert told["well"] == [*run.explain().well]
    assert {tuple(one["missing"]) for one in told["unknown"]} == {*run.explain().unknown}


def test_its_next_commands_work(answer: Answered, ask: Asked, known: str) -> None:
    for cause in answer("explain", known)["causes"]:
        for command in cause["next"]:
            program, *words = shlex.split(command)
            assert program == "nbp"
            assert ask(*words)[0] == 0


def test_its_text_is_short_and_holds_sentence_evidence_and_what_is_well(
    ask: Asked, known: str
) -> None:
    code, out, err = ask("explain", known)
    assert (code, err) == (0, "")
    assert out.startswith("known: finished, 400 steps\n400 steps: 2 causes, 1 remark\n")
    assert "- step 300: severe: nonfinite_output at head: 100.00% of the outputs are NaN" in out
    assert f"head grad_norm: {norms()[299, 1]:.4g} (step 299) before, nan (step 300) then" in out
    assert "looked at, nothing found" in out
    assert "not judged, as nothing was measured:" in out
    assert tokens(out) <= 2000


def test_a_healthy_run_has_no_cause(answer: Answered, tmp_path: Path) -> None:
    told = answer("explain", build(tmp_path / "fine.zarr", "fine", ()))
    assert told["causes"] == []
    assert told["verdict"] == "400 steps: no causes, 1 remark"


def test_alerts_are_those_of_the_record_by_step(answer: Answered, known: str) -> None:
    told = answer("alerts", known)["alerts"]
    assert [one["rule"] for one in told] == [QUIET.rule, SPIKE.rule, GONE.rule]
    assert [one["severity"] for one in told] == ["remark", "warning", "severe"]
    assert [one["sentence"] for one in told] == [
        one.sentence for one in (QUIET, *nbp.open_run(known).alerts)
    ]
    assert [one["step"] for one in answer("alerts", known, "--since", "158")["alerts"]] == [300]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--fail-on", "severe"], 3),
        (["--fail-on", "severe", "--since", "301"], 0),
        (["--fail-on", "warning"], 3),
        (["--fail-on", "remark"], 3),
        ([], 0),
    ],
)
def test_a_level_decides_the_exit_code(ask: Asked, known: str, words: list[str], code: int) -> None:
    assert ask("alerts", known, *words)[0] == code


def test_a_warning_does_not_fail_on_severe(ask: Asked, tmp_path: Path) -> None:
    place = build(tmp_path / "mild.zarr", "mild", (SPIKE,))
    assert ask("alerts", place, "--fail-on", "severe")[0] == 0
    assert ask("alerts", place, "--fail-on", "warning")[0] == 3


def test_the_level_counts_alerts_that_the_limit_leaves_out(ask: Asked, known: str) -> None:
    code, out, _ = ask("alerts", known, "--limit", "1", "--fail-on", "severe")
    assert code == 3
    assert out.splitlines()[-1] == "2 more alerts; --limit 0 prints all"


def test_a_rule_that_raised_is_in_both_lists_of_findings(
    answer: Answered, ask: Asked, tmp_path: Path
) -> None:
    place = build(tmp_path / "off.zarr", "off", ())
    with RecordWriter.reopen(place) as writer:
        writer.event(3, "error", rule_off("odd", "KeyError: 3"))
    assert ask("alerts", place)[1].splitlines()[-1] == "rule odd is off: KeyError: 3"
    lines = ask("explain", place)[1].splitlines()
    assert lines[lines.index("off, as the rule raised an error:") + 1] == "  odd: KeyError: 3"
    off = [{"rule": "odd", "error": "KeyError: 3"}]
    assert answer("alerts", place)["off"] == answer("explain", place)["off"] == off


def test_modules_are_a_tree_with_parameters_and_alerts(answer: Answered, known: str) -> None:
    told = answer("tree", known)["modules"]
    assert [one["name"] for one in told] == ["(root)", "body", "body.0", "head"]
    assert [one["depth"] for one in told] == [0, 1, 2, 1]
    assert [one["class_name"] for one in told] == [row.class_name for row in MODULES]
    assert [one["n_params"] for one in told] == [120, 100, 100, 20]
    assert [one["n_own_params"] for one in told] == [0, 0, 100, 20]
    assert [one["quantities"] for one in told] == [1, 0, 2, 1]
    assert [one["alerts"] for one in told] == [["loss_spike"], [], [], ["nonfinite_output"]]
    assert [one["name"] for one in answer("tree", known, "--depth", "1")["modules"]] == [
        "(root)",
        "body",
        "head",
    ]


def test_a_layer_that_does_not_change_is_named(
    answer: Answered, ask: Asked, tmp_path: Path
) -> None:
    place = tmp_path / "frozen.zarr"
    with RecordWriter(place, title="frozen", modules=MODULES) as writer:
        stream = writer.stream("every_1")
        stream.extend(["body.0", "head"], [Variable("update_ratio")])
        for step, ratios in enumerate([[0.1, 0.1], [0.0, 0.2], [np.nan, 0.3]]):
            stream.record(step, step, np.array([ratios], np.float32))
    told = {one["name"]: one["updated"] for one in answer("tree", str(place))["modules"]}
    assert told == {"(root)": None, "body": None, "body.0": False, "head": True}
    assert "body.0, Linear, 100 (100), not updated, 1 quantity\n" in ask("tree", str(place))[1]


OWNED = {
    "groups": [{"optimizer": "AdamW", "lr": 0.001, "contents": "1 weight"}],
    "modules": [
        {"trainable": True, "groups": [0], "names": ["body.0"]},
        {"trainable": False, "groups": [], "names": ["head"]},
    ],
}


def test_modules_have_the_parameter_groups_that_train_them(
    answer: Answered, ask: Asked, tmp_path: Path
) -> None:
    place = tmp_path / "owned.zarr"
    with RecordWriter(place, title="owned", modules=MODULES) as writer:
        writer.annotate(trained=json.dumps(OWNED))
    told = answer("tree", str(place))
    assert told["groups"] == [
        {"group": 0, "optimizer": "AdamW", "lr": 0.001, "contents": "1 weight"}
    ]
    found = {one["name"]: (one["trainable"], one["groups"]) for one in told["modules"]}
    assert found == {
        "(root)": (None, []),
        "body": (None, []),
        "body.0": (True, [0]),
        "head": (False, []),
    }
    text = ask("tree", str(place))[1]
    assert "group 0: AdamW, lr 0.001, 1 weight\n" in text
    assert "body.0, Linear, 100 (100), group 0, 0 quantities\n" in text
    assert "head, Linear, 20 (20), frozen, 0 quantities\n" in text


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"groups": 1, "modules": {}}',
        '{"groups": [1, {"lr": "x"}], "modules": [2, {"names": [3, "head"], "groups": [7, "x"]}]}',
    ],
)
def test_malformed_groups_are_left_out(answer: Answered, tmp_path: Path, text: str) -> None:
    place = tmp_path / "odd.zarr"
    with RecordWriter(place, title="odd", modules=MODULES) as writer:
        writer.annotate(trained=text)
    told = answer("tree", str(place))
    assert all(one["groups"] == [] for one in told["modules"])
    assert [one["lr"] for one in told["groups"]] in ([], [None])


def test_a_large_model_is_cut_to_the_limit(answer: Answered, ask: Asked, tmp_path: Path) -> None:
    many = [MODULES[0], *(ModuleRow(f"m{i}", "Linear", 1, 1, 0) for i in range(999))]
    with RecordWriter(tmp_path / "large.zarr", title="large", modules=many):
        pass
    told = answer("tree", str(tmp_path / "large.zarr"))
    assert len(told["modules"]) + told["left_out"] == 1000
    text = ask("tree", str(tmp_path / "large.zarr"))[1]
    assert 1500 < tokens(text) < 2100
    assert len(answer("tree", str(tmp_path / "large.zarr"), "--limit", "0")["modules"]) == 1000


def test_a_wrong_place_has_close_names_even_without_a_catalogue(
    ask: Asked, known: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    code, out, err = ask("explain", known.replace("known.zarr", "knwon.zarr"))
    assert (code, out) == (2, "")
    assert "close: 'known.zarr'; a catalogue needs sqlalchemy: pip install" in err


def test_an_empty_run_has_answers_too(answer: Answered, ask: Asked, tmp_path: Path) -> None:
    place = str(tmp_path / "empty.zarr")
    with RecordWriter(tmp_path / "empty.zarr", title="empty", modules=[]):
        pass
    assert answer("explain", place)["causes"] == []
    assert answer("alerts", place)["alerts"] == []
    assert answer("tree", place)["modules"] == []
    assert answer("quantities", place)["recorded"] == []
    code, _, err = ask("series", place, "", "loss")
    assert (code, "no quantity 'loss' is recorded; known: none" in err) == (2, True)
