"""Functions of the panel that need no page, run by Node where there is one, else by a browser."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from notebook_probe.explorer.assets import esm

__all__ = ["PARTS", "NodeParts", "PanelParts", "node_parts"]

MODULES = re.findall(r"^const (\$[\w$]+) = ", esm(), re.MULTILINE)
PARTS = f"export const $parts = {{ {', '.join(f'...{module}' for module in MODULES)} }};"
"""Everything the panel is made of, so that a test can call one part with known numbers."""

# Answers a line by a line. Both are JSON as Python writes it, with numbers that are not finite:
# a line is read as the literal that it is in JavaScript, and an answer has marked texts for them.
SERVER = """
import { createInterface } from "node:readline";
import { $parts } from "./panel.mjs";

globalThis.parts = $parts;
const evaluate = (source) => (0, eval)(`(${source})`);
const named = (key, value) =>
  typeof value === "number" && !Number.isFinite(value) ? `\\0${value}` : value;
for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    const { source, given } = evaluate(line);
    const value = evaluate(source);
    answer = { result: await (typeof value === "function" ? value(given) : value) };
  } catch (error) {
    answer = { error: String(error.stack) };
  }
  console.log(JSON.stringify(answer, named));
}
"""
NOT_FINITE = re.compile(r'"\\u0000(-?Infinity|NaN)"')


class PanelParts(Protocol):
    """The panel's functions: what a test of arithmetic needs of a page."""

    def evaluate(self, source: str, given: Any = None) -> Any:
        """Return the value of an expression, or of a function that is called with ``given``."""

    def call(self, function: str, *arguments: Any) -> Any:
        """Return what one function of the panel returns."""


class NodeParts:
    """The panel's functions in a Node process of their own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def evaluate(self, source: str, given: Any = None) -> Any:
        asked, answers = self._process.stdin, self._process.stdout
        assert asked is not None
        assert answers is not None
        asked.write(json.dumps({"source": source, "given": given}) + "\n")
        asked.flush()
        answer = json.loads(NOT_FINITE.sub(r"\1", answers.readline()))
        if "error" in answer:
            raise AssertionError(answer["error"])
        return answer.get("result")

    def call(self, function: str, *arguments: Any) -> Any:
        return self.evaluate("([name, given]) => parts[name](...given)", [function, arguments])


@contextmanager
def node_parts(node: str, folder: Path) -> Iterator[NodeParts]:
    """Start Node with the panel's functions; it ends with the context."""
    (folder / "panel.mjs").write_text(f"{esm()}\n{PARTS}", encoding="utf-8")
    (folder / "server.mjs").write_text(SERVER, encoding="utf-8")
    with subprocess.Popen(
        [node, str(folder / "server.mjs")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        yield NodeParts(process)
        assert process.stdin is not None
        process.stdin.close()
