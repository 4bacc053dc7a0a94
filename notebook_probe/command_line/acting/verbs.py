"""The verbs that act on a training, each with its arguments and its request."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from typing import Literal

from notebook_probe.command_line.acting.requesting import add_request
from notebook_probe.command_line.asked import count
from notebook_probe.run.attach.requests import Attach, Control, Detach, LookAt, Set
from notebook_probe.run.going_back.requests import GoBack, SaveCheckpoint

__all__ = [
    "add_attach",
    "add_checkpoint",
    "add_detach",
    "add_look",
    "add_rewind",
    "add_set",
    "adding_control",
]

MODULE = "a module path or a pattern such as 'layer1.*'; '(root)' is the whole model"


def add_attach(parser: ArgumentParser) -> None:
    """Add the options of `attach`."""
    add_request(parser, lambda asked: Attach((asked.module,), asked.quantity, asked.schedule))
    parser.add_argument("module", metavar="MODULE", help=MODULE)
    parser.add_argument(
        "quantity", metavar="QUANTITY", help="name of a quantity; nbp quantities WORD finds one"
    )
    parser.add_argument(
        "schedule", metavar="SCHEDULE", nargs="?", default="every(1)", help="by default %(default)s"
    )


def add_detach(parser: ArgumentParser) -> None:
    """Add the options of `detach`."""
    add_request(parser, lambda asked: Detach((asked.module,), asked.quantity))
    parser.add_argument("module", metavar="MODULE", help=MODULE)
    parser.add_argument(
        "quantity", metavar="QUANTITY", nargs="?", default="", help="by default every quantity"
    )


def add_set(parser: ArgumentParser) -> None:
    """Add the options of `set`."""
    add_request(parser, lambda asked: Set(asked.name, asked.value, asked.group, asked.hold))
    parser.add_argument("name", metavar="NAME", help="an option such as lr, or your own knob")
    parser.add_argument("value", metavar="VALUE", type=float, help="a number")
    parser.add_argument("--group", type=count, metavar="N", help="parameter group, by default all")
    parser.add_argument("--hold", action="store_true", help="ignore the schedule of the training")


def adding_control(
    action: Literal["pause", "resume", "step", "stop"],
) -> Callable[[ArgumentParser], None]:
    """Return the function that adds the options of one of the four."""
    return lambda parser: add_request(parser, lambda asked: Control(action))


def add_checkpoint(parser: ArgumentParser) -> None:
    """Add the options of `checkpoint`."""
    add_request(parser, lambda asked: SaveCheckpoint())


def add_rewind(parser: ArgumentParser) -> None:
    """Add the options of `rewind`."""
    add_request(
        parser,
        lambda asked: GoBack(
            asked.step, asked.preset, asked.schedule, asked.until, asked.lr, asked.pause_at
        ),
    )
    parser.add_argument("step", metavar="STEP", type=count, help="number of completed updates")
    parser.add_argument("--lr", type=float, metavar="RATE", help="learning rate from there on")
    parser.add_argument("--pause-at", type=count, metavar="STEP", help="pause before this step")
    parser.add_argument("--preset", default="", help="preset to measure in addition")
    parser.add_argument(
        "--schedule", default="every(1)", help="schedule of the preset: %(default)s"
    )
    parser.add_argument("--until", type=count, metavar="STEP", help="last step of the preset")


def add_look(parser: ArgumentParser) -> None:
    """Add the options of `look`."""
    add_request(parser, lambda asked: LookAt(asked.module, asked.samples))
    parser.add_argument("module", metavar="MODULE", help="path of one module")
    parser.add_argument(
        "--samples", type=count, default=8, metavar="N", help="samples to store: %(default)s"
    )
