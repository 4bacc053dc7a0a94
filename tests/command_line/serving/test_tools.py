"""A tool takes what its command takes, and answers with the command's JSON."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, validate

from notebook_probe.command_line import main
from notebook_probe.command_line.main import COMMANDS
from notebook_probe.command_line.serving.arguments import CommandArguments
from notebook_probe.command_line.serving.calling import call, divided_output
from notebook_probe.command_line.serving.tools import CommandTool, tools_of
from notebook_probe.errors import QueryError
from tests.command_line.reading.conftest import Asked, ask, known, strict_json

__all__ = ["ask", "known"]  # fixtures

TOOLS = tools_of(COMMANDS, main)
ENDS = {"stop", "rewind"}


def answer(name: str, **given: Any) -> Any:
    with divided_output(io.StringIO()):
        return TOOLS[name].answer(given)


def test_tools_read_and_act_and_none_runs_deletes_or_marks() -> None:
    assert {*TOOLS} >= {"runs", "explain", "series", "follow", "attach", "set", "stop"}
    assert {*TOOLS}.isdisjoint(
        {"run", "clean-up", "archive", "export", "import", "first-difference", "mcp"}
    )
    reading = tools_of(COMMANDS, main, acts=False)
    assert all(one.is_reading for one in reading.values())
    assert {name for name, one in TOOLS.items() if one.is_ending} == ENDS
    assert {*TOOLS} - {*reading} >= ENDS


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_schemas_are_sound_and_have_no_option_of_the_form(name: str) -> None:
    tool = TOOLS[name]
    for schema in (tool.takes, tool.gives):
        Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
    assert {"json", "csv", "catalogue", "root", "help"}.isdisjoint(tool.takes["properties"])
    assert tool.about


def test_an_argument_has_the_type_and_the_text_of_its_option() -> None:
    found = TOOLS["series"].takes
    assert found["required"] == ["run", "module", "quantity"]
    assert found["properties"]["points"]["type"] == "integer"
    assert TOOLS["set"].takes["properties"]["value"] == {
        "type": "number",
        "description": "a number",
    }
    assert TOOLS["set"].takes["properties"]["hold"]["type"] == "boolean"
    assert TOOLS["explain"].takes["properties"]["against"]["type"] == "array"
    assert TOOLS["compare"].takes["properties"]["runs"]["minItems"] == 2
    assert TOOLS["attach"].takes["properties"]["schedule"]["description"] == "by default every(1)"
    assert "schedule" not in TOOLS["attach"].takes["required"]


@pytest.mark.parametrize(
    ("name", "given", "options"),
    [
        ("series", {"module": "(root)", "quantity": "loss", "last": 3}, ["--last=3"]),
        ("explain", {"step": 200}, ["--step=200"]),
        ("alerts", {"since": 200}, ["--since=200"]),
        ("tree", {}, []),
        ("show", {}, []),
        ("plot", {"module": "head", "quantity": "*", "ascii": True}, ["--ascii"]),
    ],
)
def test_the_answer_is_that_of_the_command(
    known: str, ask: Asked, name: str, given: dict[str, Any], options: list[str]
) -> None:
    words = [given[one] for one in ("module", "quantity") if one in given]
    code, out, _ = ask(name, known, *words, *options, "--json")
    found = answer(name, run=known, **given)
    assert (found.found, found.code) == (strict_json(out), code)
    assert strict_json(found.text) == found.found
    validate(found.found, TOOLS[name].gives)


def test_lists_are_objects(known: str, ask: Asked) -> None:
    lines = answer("follow", run=known).found
    kinds = [one["kind"] for one in lines["lines"]]
    assert (kinds[0], kinds[-1]) == ("start", "end")
    validate(lines, TOOLS["follow"].gives)
    runs = answer("runs", folder=[str(Path(known).parent)]).found
    assert [one["run"] for one in runs["runs"]] == [known]
    validate(runs, TOOLS["runs"].gives)


def test_a_condition_that_is_met_is_in_the_exit_code(known: str) -> None:
    assert answer("alerts", run=known, fail_on="severe").code == 3


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("explain", {}, "the argument 'run' is missing"),
        ("explain", {"run": "r", "sinse": 3}, "no argument 'sinse'"),
        ("explain", {"run": "nowhere.zarr"}, "nowhere.zarr"),
        ("series", {"module": "head", "quantity": "grad_nrm"}, "grad_norm"),
        ("series", {"module": "--json", "quantity": "--help"}, "no quantity '--help'"),
        ("explain", {"step": "soon"}, "--step"),
        ("pause", {}, "no process trains this run now"),
    ],
)
def test_what_cannot_be_done_is_the_sentence_of_the_command(
    known: str, ask: Asked, name: str, given: dict[str, Any], message: str
) -> None:
    run = {} if message.startswith("the argument") else {"run": known}
    found = answer(name, **{**run, **given})
    assert (found.found, found.code) == (None, 2)
    assert message in found.text
    assert not found.text.startswith("notebook_probe")


def test_two_calls_at_once_have_their_own_output_and_nothing_else_is_in_it() -> None:
    both, usual, found = threading.Barrier(2), io.StringIO(), {}

    def run(words: Sequence[str]) -> int:
        both.wait(5)
        print(*words)
        both.wait(5)
        print("error of", *words, file=sys.stderr)
        return len(words)

    def one(*words: str) -> None:
        found[words] = call(run, words)

    with divided_output(usual):
        threads = [threading.Thread(target=one, args=words) for words in (("a",), ("b", "c"))]
        for thread in threads:
            thread.start()
        print("of the server")
        for thread in threads:
            thread.join()
    assert {words: (one.code, one.out, one.err) for words, one in found.items()} == {
        ("a",): (1, "a\n", "error of a\n"),
        ("b", "c"): (2, "b c\n", "error of b c\n"),
    }
    assert usual.getvalue() == "of the server\n"


def test_an_unexpected_error_of_a_command_is_an_answer() -> None:
    def run(_: Sequence[str]) -> int:
        raise ZeroDivisionError("nothing to divide by")

    tool = CommandTool("tree", "", COMMANDS["tree"][0], run, ())
    with divided_output(io.StringIO()):
        found = tool.answer({"run": "r"})
    assert found.text == "ZeroDivisionError: nothing to divide by"


def test_the_catalogue_is_that_of_the_server(known: str) -> None:
    asked: list[Sequence[str]] = []

    def run(words: Sequence[str]) -> int:
        asked.append(words)
        return 2

    tools = tools_of(COMMANDS, run, catalogue=["--root=/lab"])
    with divided_output(io.StringIO()):
        tools["tree"].answer({"run": "r"})
    assert asked == [["tree", "--json", "--root=/lab", "--", "r"]]


def test_an_argument_that_is_missing_or_unknown_is_refused() -> None:
    arguments = CommandArguments(COMMANDS["series"][0])
    with pytest.raises(QueryError, match="close: 'quantity'"):
        arguments.words({"quantty": "loss"})


def test_without_the_package_the_error_says_how_to_install_it(
    ask: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "anyio", None)
    code, out, err = ask("mcp")
    assert (code, out) == (2, "")
    assert "notebook-probe[agents]" in err
