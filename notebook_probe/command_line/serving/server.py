"""``mcp``: the commands as tools over stdin and stdout, by the official package."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

from notebook_probe import __version__
from notebook_probe.command_line.asked import add_catalogue
from notebook_probe.command_line.serving.calling import WRONG, divided_output
from notebook_probe.command_line.serving.tools import Answered, Commands, CommandTool, tools_of
from notebook_probe.errors import MissingExtraError

__all__ = ["add"]

INSTRUCTIONS = (
    "Reads what notebook_probe recorded of PyTorch trainings, finished or running now, and acts on "
    "those that allow control. Begin with runs, then explain: causes with step, place, evidence "
    "and advice. Ask the person before stop and rewind. The whole model is the module '(root)'."
)


def add(parser: ArgumentParser, commands: Commands, run: Callable[[Sequence[str]], int]) -> None:
    """Add the options; ``commands`` and ``run`` are those of this program."""
    parser.add_argument(
        "--read-only", action="store_true", help="leave out the tools that act on a training"
    )
    add_catalogue(parser)
    parser.set_defaults(do=lambda asked: do(asked, commands, run))


def do(asked: Namespace, commands: Commands, run: Callable[[Sequence[str]], int]) -> None:
    """Serve until stdin ends."""
    try:
        import anyio

        import_module("mcp")  # here, as this error says what to install
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "nbp mcp needs the package mcp: pip install 'notebook-probe[agents]'"
        ) from error
    catalogue = [*_catalogue(asked)]
    tools = tools_of(commands, run, acts=not asked.read_only, catalogue=catalogue)
    anyio.run(_serve, tools)


def _catalogue(asked: Namespace) -> Iterator[str]:
    """Yield the options of the catalogue, for every command."""
    if asked.catalogue:
        yield f"--catalogue={asked.catalogue}"
    yield from (f"--root={one}" for one in asked.root or ())


async def _serve(tools: Mapping[str, CommandTool]) -> None:
    import anyio
    from mcp import types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server

    listed = types.ListToolsResult(tools=[_tool(one) for one in tools.values()])

    async def list_tools(_: Any, __: Any) -> types.ListToolsResult:
        return listed

    async def call_tool(_: Any, called: types.CallToolRequestParams) -> types.CallToolResult:
        tool = tools.get(called.name)
        if tool is None:
            return _result(Answered(f"no tool {called.name!r}", None, "", WRONG))
        answer = partial(tool.answer, called.arguments or {})
        return _result(await anyio.to_thread.run_sync(answer, abandon_on_cancel=True))

    server: Server[Any] = Server(
        "notebook_probe",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    # Inside: stdout is the protocol's, which keeps it.
    async with stdio_server() as (messages, answers):
        with divided_output(sys.stderr):
            await server.run(messages, answers, server.create_initialization_options())


def _tool(one: CommandTool) -> Any:
    from mcp import types

    return types.Tool(
        name=one.name,
        description=one.about,
        input_schema=one.takes,
        output_schema=one.gives,
        annotations=types.ToolAnnotations(
            read_only_hint=one.is_reading,
            destructive_hint=one.is_ending,
            open_world_hint=False,
        ),
    )


def _result(answer: Answered) -> Any:
    from mcp import types

    texts = [answer.text, *([answer.warnings] if answer.warnings else [])]
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=one) for one in texts],
        structured_content=answer.found,
        is_error=answer.code == WRONG,
        _meta={"exit_code": answer.code},
    )
