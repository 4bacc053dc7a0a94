"""``schema``: JSON schemas of the outputs."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from notebook_probe.command_line.acting.answer import ActAnswer
from notebook_probe.command_line.first_difference import FirstDifferenceAnswer
from notebook_probe.command_line.printed import print_json
from notebook_probe.command_line.reading import answers
from notebook_probe.command_line.reading.json_schema import DIALECT, schema_of
from notebook_probe.errors import UnknownNameError, near

__all__ = ["add", "schemas"]

PLAIN = {"type": ["string", "number", "boolean", "array", "object", "null"]}
ROW: dict[str, Any] = {
    "type": "object",
    "description": "Columns by name, such as config.lr; unknown values are absent or null.",
    "properties": {
        "run": {"type": "string", "description": "location of the record"},
        "name": {"type": "string"},
        "state": {"enum": ["running", "finished", "killed"]},
        "steps": {"type": ["integer", "null"]},
    },
    "required": ["run", "name"],
    "additionalProperties": PLAIN,
}
FACTOR = {"type": ["number", "string", "null"]}
PARTED = {
    "type": "object",
    "properties": {
        "module": {"type": "string"},
        "step": {"type": "integer"},
        "there": {"type": "string", "description": "distance at that step, as text"},
        "now": {"type": "string", "description": "distance at the last row, as text"},
        "there_factor": FACTOR,
        "now_factor": FACTOR,
    },
    "required": ["module", "step", "there", "now", "there_factor", "now_factor"],
}
TEXTS = {"type": "array", "items": {"type": "string"}}
OF_CATALOGUE: dict[str, dict[str, Any]] = {
    "runs": {"type": "array", "items": ROW},
    "show": {
        **ROW,
        "properties": {
            **ROW["properties"],
            "found": {"type": "array", "items": {"type": "object", "required": ["text"]}},
            "sentences": {**TEXTS, "description": "lines that show prints about alerts"},
        },
        "required": [*ROW["required"], "found", "sentences"],
    },
    "compare": {
        "type": "object",
        "properties": {
            "runs": TEXTS,
            "differing": {"type": "object", "description": "values of both runs by name"},
            "model": {
                "type": "string",
                "description": "difference of the second model; empty if there is none",
            },
            "parting": {
                "type": "object",
                "properties": {
                    "text": {"type": "string"},
                    "factor": {"type": "number", "description": "least ratio that is far apart"},
                    "modules": {"type": "array", "items": PARTED},
                    "lately": {"type": "array", "items": PARTED},
                    "unread": {
                        "type": "object",
                        "description": "error by quantity, of those damaged in a record",
                    },
                },
                "required": ["text", "asked", "unread"],
            },
        },
        "required": ["runs", "differing", "model", "parting"],
    },
}
OF_RUN = {
    "explain": answers.ExplainAnswer,
    "series": answers.SeriesAnswer,
    "tree": answers.TreeAnswer,
    "quantities": answers.QuantitiesAnswer,
    "alerts": answers.AlertsAnswer,
    "output": answers.OutputAnswer,
    "plot": answers.PlotAnswer,
    "follow": answers.FollowLine,
    "first-difference": FirstDifferenceAnswer,
    **dict.fromkeys(
        (
            *("attach", "detach", "set", "pause", "resume", "step", "stop"),
            *("checkpoint", "rewind", "look"),
        ),
        ActAnswer,
    ),
}


def add(parser: ArgumentParser) -> None:
    """Add the argument."""
    parser.add_argument("verb", nargs="?", metavar="VERB", help="a command, by default all")
    parser.set_defaults(do=do)


def do(asked: Namespace) -> None:
    """Print one schema, or all by verb."""
    known = schemas()
    if asked.verb is None:
        print_json(known)
    elif asked.verb in known:
        print_json(known[asked.verb])
    else:
        raise UnknownNameError(f"no schema of {asked.verb!r}; {near(asked.verb, known)}")


def schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON schema of the output of each verb; of `follow` that of one line."""
    of_catalogue = {
        verb: {"$schema": DIALECT, "title": f"nbp {verb} --json", **body}
        for verb, body in OF_CATALOGUE.items()
    }
    of_run = {
        verb: schema_of(kind, f"nbp {verb}{'' if verb == 'follow' else ' --json'}")
        for verb, kind in OF_RUN.items()
    }
    return {**of_catalogue, **of_run}
