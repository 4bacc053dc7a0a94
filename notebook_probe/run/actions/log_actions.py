"""Values that users log: numbers, images and notes; and mirrors to other loggers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, SupportsFloat

from numpy.typing import ArrayLike
from torch import Tensor

from notebook_probe.errors import QuantityError, shown_as
from notebook_probe.probes.step.probe import PhaseName
from notebook_probe.quantities.define.numbers import read_array, read_scalars
from notebook_probe.record.format.notes import ANNOTATIONS, OWN_KINDS, written_notes
from notebook_probe.run.actions.base import LiveActions
from notebook_probe.run.mirror.mirror import Mirror

__all__ = ["LogActions"]


@shown_as("run")
class LogActions(LiveActions):
    """Methods that record what the user provides."""

    def log(
        self,
        values: str | Mapping[str, SupportsFloat] | None = None,
        value: SupportsFloat | None = None,
        /,
        *,
        phase: PhaseName = "training",
        **scalars: SupportsFloat,
    ) -> None:
        """Record scalars, e.g. ``run.log(loss=loss)`` or ``run.log("train/loss", loss)``.

        A number belongs to the step trained last while its cell still runs, otherwise to the next
        step. If your loop logs before each forward, the second value of a name, or one whose last
        value was logged before a forward, belongs to the next step. A number of an evaluation
        belongs to the evaluated state: with ``phase="eval"`` its step is the number of updates
        completed. A tensor stays on its device until the next flush. The same name again in one
        step replaces the value, with one warning.

        A name is any printable text; the scalar is read under it, ``run.data["train/loss"]``. If
        the whole model has a measured series of the name, it is read as ``logged_grad_norm``, and
        numbers of evaluations as ``eval_acc`` if ``acc`` is also logged in training steps, with one
        warning. The first 16 that are valid variable names have arrays in ``scalars/every_1``, all
        others are columns of ``names/logged``.

        Parameters
        ----------
        values : str or mapping, optional
            The name of one scalar, or scalars by name, ``run.log({"train/loss": loss})``.
        value : number or tensor of one element, optional
            The scalar, after its name.
        phase : "training" or "eval"
        **scalars : number or tensor of one element

        Raises
        ------
        QuantityError
            A value is not one real number, a name is empty, too long or the name of a coordinate,
            or the phase is another.

        Warns
        -----
        ReplacedWarning
            A value was replaced; once for each name.

        Examples
        --------
        >>> run.log(loss=loss)  # doctest: +SKIP
        >>> run.log({"val/loss": validate(model)}, phase="eval")  # doctest: +SKIP
        """
        live = self._live
        is_by_name = values is None and value is None
        given = scalars if is_by_name else {**_by_name(values, value), **scalars}
        checked, on_device = read_scalars("log", given)
        live.loop_log.log(checked, on_device, phase)

    def log_array(self, name: str, array: ArrayLike | Tensor, module: str = "") -> None:
        """Record an image or another small array, at the step that `log` records at.

        It is copied and stored as float32: bytes, halves and truth values without a loss. It counts
        in ``max_bytes``. The same name again in one step replaces the array; the first time, a
        warning is shown. ``run.series(module, name)`` has dims (step, dim_0, ...), and
        ``run.blobs[name][module]`` is the same; under one name a module's arrays are of one shape.

        Parameters
        ----------
        name : str
            A word of letters, digits and ``_`` that is not the name of a quantity.
        array : Tensor or array of real numbers
            One dimension or more, and at most 2**20 elements; a tensor on an accelerator stays
            there until the next flush.
        module : str
            Path of the module or parameter that the array describes; ``""`` for the whole model.

        Raises
        ------
        QuantityError
            The array is of another type, has another shape than in the previous step, or the name
            has another meaning.
        UnknownNameError
            For a module that is not in the model.
        RuntimeError
            Inside `at_step`.
        ClosedRunError

        Examples
        --------
        >>> run.log_array("samples", images[:8])  # doctest: +SKIP
        >>> run.log_array("filters", model.conv1.weight, module="conv1")  # doctest: +SKIP
        """
        live = self._live
        live.loop_log.log_array(name, module, read_array(f"log_array({name!r}):", array))

    def annotate(self, **notes: Any) -> None:
        """Store notes about the run until it is closed; the same name replaces the earlier note.

        Parameters
        ----------
        **notes : text, number, bool, None, or lists and dicts of these
            Stored in the record; `annotations` returns all of them.

        Raises
        ------
        ValueError
            For anything else.
        ClosedRunError

        Examples
        --------
        >>> run.annotate(purpose="warm-up halved", data={"name": "digits", "n": 1797})
        ... # doctest: +SKIP
        """
        self._add_notes(ANNOTATIONS, notes)

    def mirror(self, logger: object) -> Mirror:
        """Copy every recorded number to another logger, in a background thread.

        Tags are ``conv1/grad_norm``, and ``loss`` for logged scalars and the whole model. All
        numbers of a step are sent together, in the order of steps, about a second after they were
        recorded and at the latest when the run or the mirror is closed: close it before you finish
        the logger. Vectors and arrays stay in the record only. A logger that raises ends its
        mirror, with a warning, a note in the status and an event; training and recording continue.

        Parameters
        ----------
        logger : object
            Anything with ``log(values, step=)``, such as W&B's run and trackio,
            ``add_scalar(tag, value, step)``, such as TensorBoard's `SummaryWriter`, or
            ``log_metrics(values, step=)``, such as the module `mlflow` with an active run and the
            loggers of Lightning.

        Returns
        -------
        Mirror
            ``close()`` ends it. A logger that already has a mirror returns that one.

        Raises
        ------
        TypeError
            For anything else.
        ValueError
            For mlflow without an active run.
        ClosedRunError

        Examples
        --------
        >>> run.mirror(wandb.init(project="digits"))  # doctest: +SKIP
        """
        return self._live.mirrors.add(logger)

    def note(self, kind: str, text: str, **detail: Any) -> None:
        """Note that something happened at this step, as an event of the record.

        Parameters
        ----------
        kind : str
            Kind of event, of letters, digits and ``_``, such as ``"learning_rate"``.
        text : str
            Text for readers.
        **detail : text, number, bool, None, or lists and dicts of these
            Values for programs; JSON in the event.

        Raises
        ------
        ValueError
            The kind is not a word, the text is empty, or JSON cannot represent the details.
        ClosedRunError

        Examples
        --------
        >>> run.note("data", "the second half begins", files=["b.bin"])  # doctest: +SKIP
        """
        live = self._live
        # A note of such a kind would be read as one of the record's own events.
        if not (isinstance(kind, str) and kind.isidentifier()) or kind in OWN_KINDS:
            raise ValueError(
                f"note(kind={kind!r}): a word of letters, digits and _, and none of the record's "
                f"own: {', '.join(sorted(OWN_KINDS))}"
            )
        if not (isinstance(text, str) and text.strip()):
            raise ValueError(f"note({kind!r}, {text!r}): the text says what happened")
        told = written_notes(f"note({kind!r})", detail) if detail else ""
        live.writer.event(live.observer.clock.upcoming, kind, text, told)


def _by_name(
    values: str | Mapping[str, SupportsFloat] | None, value: SupportsFloat | None
) -> Mapping[str, SupportsFloat]:
    """Return scalars by name, of a name and its value, or of a mapping."""
    if isinstance(values, str) and value is not None:
        return {values: value}
    if value is None and isinstance(values, Mapping):
        return values
    given = ", ".join(type(one).__name__ for one in (values, value) if one is not None)
    raise QuantityError(
        f"log({given}): numbers by name are expected, as in log(loss=loss), or log('loss', loss)"
    )
