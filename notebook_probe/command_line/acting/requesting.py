"""Send the request of a verb, and print its ticket."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator

from notebook_probe.command_line.acting.answer import ActAnswer
from notebook_probe.command_line.asked import RUN, add_catalogue, location_of
from notebook_probe.command_line.reading.printing import add_output, print_answer, seconds
from notebook_probe.errors import ProbeError
from notebook_probe.run.attach.requests import Request
from notebook_probe.run.remote_control.asking import Asked, ask_run
from notebook_probe.run.remote_control.letters import name_of
from notebook_probe.run.remote_control.lines import whoami

__all__ = ["add_request"]

REFUSED, NOT_YET = 2, 3
TIMEOUT_S = 10.0


def add_request(parser: ArgumentParser, request: Callable[[Namespace], Request]) -> None:
    """Add the argument RUN and what all verbs share; ``request`` makes the request of a verb."""
    parser.add_argument("run", metavar="RUN", help=RUN)
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=TIMEOUT_S,
        metavar="S",
        help="seconds to wait for the next step of the training: %(default)s",
    )
    add_output(parser)
    add_catalogue(parser)
    parser.set_defaults(do=lambda asked: _do(asked, request(asked)))


def _do(asked: Namespace, request: Request) -> int:
    place = location_of(asked.run, asked)
    found = ask_run(place, request, whoami("nbp"), asked.timeout)
    answer = _answer(place, request, found)
    if answer.ticket == "refused" and not asked.json:
        raise ProbeError(answer.text)
    print_answer(answer, _text(answer), asked)
    return {"applied": 0, "refused": REFUSED}.get(answer.ticket, NOT_YET)


def _answer(place: str, request: Request, found: Asked) -> ActAnswer:
    ticket = found.answer
    state = "queued" if ticket is None else ticket.state
    assert state != "seen"  # which answers no request
    return ActAnswer(
        run=place,
        request=name_of(request),
        ticket="unanswered" if found.taken_back else state,
        queued_step=_known(-1 if ticket is None else ticket.queued_step),
        applied_step=_known(-1 if ticket is None else ticket.applied_step),
        text="" if ticket is None else ticket.text,
        way=found.way,
        seconds=round(found.seconds, 4),
    )


def _known(step: int) -> int | None:
    return step if step >= 0 else None


def _text(answer: ActAnswer) -> Iterator[str]:
    if answer.ticket == "applied":
        yield f"step {answer.applied_step}: {answer.text}"
    elif answer.ticket == "queued":
        yield f"{answer.request}: no step began in {answer.seconds:g} s; it acts at the next one"
    else:
        yield f"{answer.request}: no answer in {answer.seconds:g} s; it was taken back"
