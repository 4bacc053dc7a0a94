"""The official client of the Model Context Protocol reads a record and acts on a training."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from jsonschema import validate
from mcp import Client, StdioServerParameters

import notebook_probe as nbp
from notebook_probe.home import HOME
from tests.command_line.acting.training import EndlessTraining, endless_training
from tests.command_line.reading.build import PEAK, build
from tests.launch.programs import ROOT

pytestmark = pytest.mark.libraries


@pytest.fixture
def training(tmp_path: Path) -> Iterator[EndlessTraining]:
    with endless_training(tmp_path / "elsewhere.zarr") as one:
        yield one


@asynccontextmanager
async def client(folder: Path, *options: str) -> AsyncIterator[Client]:
    """Serve in another process, over stdin and stdout."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "notebook_probe", "mcp", *options],
        env={**os.environ, "PYTHONPATH": str(ROOT), HOME: str(folder / "home")},
        cwd=folder,
    )
    async with Client(server) as one:
        yield one


def with_client(folder: Path, act: Callable[[Client], Awaitable[None]], *options: str) -> None:
    async def whole() -> None:
        async with client(folder, *options) as one:
            await act(one)

    asyncio.run(whole())


async def asked(one: Client, name: str, /, **given: Any) -> dict[str, Any]:
    """The object that a tool answers with; its text says the same."""
    result = await one.call_tool(name, given)
    assert not result.is_error, result.content
    text = result.content[0].text
    assert json.loads(text) == result.structured_content
    return dict(result.structured_content)


def test_a_record_is_read_by_every_reading_tool(tmp_path: Path) -> None:
    place = build(tmp_path / "known.zarr")

    async def act(one: Client) -> None:
        tools = {tool.name: tool for tool in (await one.list_tools()).tools}
        found = await asked(one, "explain", run=place)
        validate(found, tools["explain"].output_schema or {})
        assert PEAK in [cause["alert"]["step"] for cause in found["causes"]]
        around = await asked(
            one, "series", run=place, module="body.0", quantity="grad_norm", around=PEAK, points=4
        )
        (series,) = around["series"]
        assert max(value for _, value in series["points"]) == 1e6
        both = await asyncio.gather(asked(one, "alerts", run=place), asked(one, "tree", run=place))
        assert [sorted(answer)[0] for answer in both] == ["alerts", "groups"]
        (run,) = (await asked(one, "runs", folder=[str(tmp_path)]))["runs"]
        assert run["run"] == place
        assert (await asked(one, "show", run=place))["steps"] == 400
        lines = (await asked(one, "follow", run=place, timeout=0))["lines"]
        assert lines[-1]["kind"] == "end"
        assert (await asked(one, "compare", runs=[place, place]))["differing"] == {}
        assert (await asked(one, "quantities", words=["loss"]))["run"] is None
        line = await asked(one, "plot", run=place, module="head", quantity="*", ascii=True)
        assert line["series"]

    with_client(tmp_path, act)


def test_a_training_that_allows_control_is_acted_on(
    tmp_path: Path, training: EndlessTraining
) -> None:
    place = training.place

    async def act(one: Client) -> None:
        paused = await asked(one, "pause", run=place)
        assert (paused["ticket"], paused["text"]) == ("applied", "paused")
        attached = await asked(
            one, "attach", run=place, module="*", quantity="output_rms", schedule="every(2)"
        )
        assert attached["text"] == "output_rms at 3 modules"
        changed = await asked(one, "set", run=place, name="lr", value=1e-4)
        assert changed["text"] == "lr 0.01 → 0.0001"
        for _ in range(2):
            assert (await asked(one, "step", run=place))["ticket"] == "applied"
        refused = await one.call_tool("attach", {"run": place, "module": "9", "quantity": "x"})
        assert refused.is_error
        assert refused.structured_content["ticket"] == "refused"
        follow = asked(one, "follow", run=place, until="finished", timeout=60)
        stop = asked(one, "stop", run=place)  # at once: one waits for the other
        lines, stopped = await asyncio.gather(follow, stop)
        assert stopped["text"] == "stopped"
        assert lines["lines"][-1]["reason"] in ("until", "finished")

    with_client(tmp_path, act)
    assert training.last_line() == "stopped 0.0001"
    record = nbp.open_run(place)
    assert len(record.series("0", "output_rms"))
    assert all("asked by" in one.text for one in record.events if one.kind == "remote")


def test_a_training_without_control_is_read_and_not_acted_on(tmp_path: Path) -> None:
    with endless_training(tmp_path / "closed.zarr", control="0") as training:

        async def act(one: Client) -> None:
            assert (await asked(one, "tree", run=training.place))["state"] == "running"
            refused = await one.call_tool("pause", {"run": training.place})
            assert refused.is_error
            assert "control" in refused.content[0].text

        with_client(tmp_path, act)


def test_a_server_that_only_reads_has_no_acting_tool(tmp_path: Path) -> None:
    async def act(one: Client) -> None:
        tools = (await one.list_tools()).tools
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
        assert (await one.call_tool("pause", {"run": "r"})).is_error

    with_client(tmp_path, act, "--read-only")
