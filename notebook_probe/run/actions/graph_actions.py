"""Network of a live run: its graph, and its export to ONNX."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from notebook_probe.checks import file_ending
from notebook_probe.errors import NoGraphError, shown_as
from notebook_probe.examine.examining import examine
from notebook_probe.examine.findings import Examination
from notebook_probe.examine.operations.comparing import ModelLike, first_difference, made
from notebook_probe.examine.operations.first_difference import FirstDifference
from notebook_probe.examine.subject import Arguments, LossFunction, Subject, copied
from notebook_probe.graph.building import in_words
from notebook_probe.graph.graph import Graph
from notebook_probe.graph.onnx_file import check_onnx, to_onnx
from notebook_probe.graph.recorded import graph_of
from notebook_probe.run.actions.base import LiveActions
from notebook_probe.run.parts import RunParts

__all__ = ["GraphActions"]

PATIENCE_S = 60.0
TURN_S = 0.25
NO_INPUTS = "no batch is known: give inputs, or keep a batch with run.probe_batch(...)"

Made = TypeVar("Made")


@shown_as("run")
class GraphActions(LiveActions):
    """Methods of a live run for its network."""

    def graph(self, *args: Any, **kwargs: Any) -> Graph:
        """Return the graph of the network: its operators, tensors between them, and modules.

        It is exported by torch, without computing anything; if that fails, the network is called
        once on copies; if that fails, too, the graph is the tree of the modules. ``how`` is the
        method, and ``why`` the reasons why a better one failed. The network does not change, and
        nothing is measured meanwhile. The record stores it as an event, `graph` of an opened record
        reads it.

        Parameters
        ----------
        *args, **kwargs
            Arguments of the network. Without any, the recorded graph; or else the graph for the
            batch of `probe_batch`; or else the tree, which is not recorded.

        Returns
        -------
        Graph
            The graph; if another thread trains, it is built between two steps.

        Raises
        ------
        NoGraphError
            The run is closed and has no recorded graph; or the training thread has completed no
            step for a minute.

        Examples
        --------
        >>> print(run.graph(images))  # doctest: +SKIP
        ResNet: exported, 69 operators of 61 modules
        """
        is_given = bool(args or kwargs)
        # Without inputs a closed run can still show the graph that it recorded.
        if not is_given and (self.closed or self._live.graphs.known() is not None):
            source = self._parts.source
            return graph_of(source.events, source.location)
        live = self._live

        def built() -> Graph:
            # The step of the call, which may be later than that of the request.
            step = live.observer.clock.upcoming
            graphs = live.graphs
            return graphs.of(args, kwargs, step) if is_given else graphs.of_kept_batch(step)

        return _between_steps(live, built)

    def to_onnx(self, path: str | PathLike[str], *args: Any, **kwargs: Any) -> Path:
        """Export the network between two steps to an ONNX file.

        It is exported in evaluation mode, with its weights; if they exceed 1 GiB, they are in a
        second file, ``....data``. Nothing in the network changes.

        Parameters
        ----------
        path : path
            Path of the file, which ends with ``.onnx``; an existing one is overwritten.
        *args, **kwargs
            Arguments of the network, which set the sizes in the file; by default the batch of
            `probe_batch`.

        Returns
        -------
        Path
            The given path.

        Raises
        ------
        MissingExtraError
            onnx or onnxscript is not installed: ``pip install 'notebook-probe[onnx]'``.
        NoGraphError
            No batch is known, or the network cannot be exported; the message says why.
        ValueError
            The path has another ending.
        ClosedRunError

        Examples
        --------
        >>> run.to_onnx("network.onnx", images)  # doctest: +SKIP
        PosixPath('network.onnx')
        """
        live = self._live
        file_ending("path", path, (".onnx",))
        check_onnx()
        given = (args, kwargs) if args or kwargs else live.kept_batch
        if given is None:
            raise NoGraphError(f"to_onnx({str(path)!r}): {NO_INPUTS}")
        try:
            return _between_steps(live, lambda: to_onnx(live.graphs.model, path, *given))
        # A full disk or a missing folder is no fault of the network.
        except OSError:
            raise
        except Exception as error:
            raise NoGraphError(f"to_onnx({str(path)!r}): {in_words(error)}") from error

    def examine(
        self, inputs: Any, targets: Any = None, loss: LossFunction | None = None
    ) -> Examination:
        """Check the model, a batch and the loss before the first step, or at any time.

        It reports the parameters in the optimizers, which modules the gradient of the loss reaches,
        whether the loss fits the model's output and its targets, whether samples or later positions
        change each other's outputs, whether evaluation is repeatable, and the cost of a step. All
        checks run on a copy, and a training in the background waits: it continues equal bit for
        bit.

        Parameters
        ----------
        inputs : Tensor, tuple or mapping
            Input of the model's call: a tuple is its arguments, a mapping its keywords.
        targets : object, optional
            Targets for ``loss``.
        loss : callable, optional
            ``loss(output, targets)``, or ``loss(output)`` without targets. By default the output's
            attribute ``loss`` is used, which models of transformers have.

        Returns
        -------
        Examination
            Findings, the worst first, including passed checks; shown as text or as a table.

        Raises
        ------
        NotApplicableError
            The model cannot be copied.
        ClosedRunError

        Examples
        --------
        >>> run.examine(images, labels, torch.nn.functional.cross_entropy)  # doctest: +SKIP
        1 wrong, 10 good
        wrong    loss: cross_entropy takes logits, and gets a softmax
                 try: return logits: the loss has the activation in it
        good     who trains: an optimizer holds all 2 parameters to train
        """
        live = self._live

        def examined() -> Examination:
            optimizers = live.observer.updates.optimizers
            return examine(Subject.of(live.graphs.model, optimizers, inputs, targets, loss))

        # All of it, as a training in the background draws from the same random generators.
        return _between_steps(live, examined)

    def first_difference(
        self,
        other: ModelLike | GraphActions,
        inputs: Any,
        targets: Any = None,
        loss: LossFunction | None = None,
        *,
        other_loss: LossFunction | None = None,
        tolerance: float = 1e-6,
    ) -> FirstDifference:
        """Return the first operation in which one step differs from that of another model.

        One step of each, forward, loss and backward, is run in training mode on copies, with the
        same batch and random numbers, and every operation is logged with a hash of its result. The
        logs are aligned by module first, so that an additional operation in one does not shift the
        rest. Weights of the same name and shape are made equal first, so that code is compared; the
        result names weights that differed. Nothing in the training changes; it waits for the two
        steps. Autocast, compiled code and fused attention are off in them.

        Parameters
        ----------
        other : nn.Module, Run or callable
            Another model, a run of a model, or a function without arguments that returns a model.
        inputs : Tensor, tuple or mapping
            Input of the models' calls: a tuple is arguments, a mapping keywords.
        targets : object, optional
            Targets for ``loss``.
        loss : callable, optional
            Same as in `examine`.
        other_loss : callable, optional
            Loss of the other model; by default ``loss``.
        tolerance : float
            Relative difference up to which results count as equal, for example for other kernels.

        Returns
        -------
        FirstDifference
            Operation, module and source line in both; shown as text. False if nothing differs.

        Raises
        ------
        NotApplicableError
            A model cannot be copied, or no loss is known.
        TypeError
            ``other`` is no model.
        ClosedRunError

        Examples
        --------
        >>> run.first_difference(Decoder(), tokens, targets, loss)  # doctest: +SKIP
        The forward first differs at blocks.0.attn: other arguments
          this:  aten.div.Tensor(~, 4.0) in blocks.0.attn at model.py:19: scores = scores / 4.0
          other: aten.div.Tensor(~, 4.1) in blocks.0.attn at other.py:19: scores = scores / 4.1
        """
        live = self._live
        model = other._live.graphs.model if isinstance(other, GraphActions) else other

        def compared() -> FirstDifference:
            this, that = copied(live.graphs.model), made(model)
            given = Arguments.of(inputs)
            return first_difference(
                this, that, given, targets, loss, other_loss=other_loss, tolerance=tolerance
            )

        return _between_steps(live, compared)


def _between_steps(live: RunParts, act: Callable[[], Made]) -> Made:
    """Run a function while no step is open, on the training thread if that is another one."""
    done: Future[Made] = Future()

    def do() -> None:
        # It is called from wherever a step ends first: by the gate, or here.
        if done.done():
            return
        try:
            done.set_result(act())
        except BaseException as error:
            # Raised on the thread that waits for the result, not in the training.
            done.set_exception(error)

    if _trains_elsewhere(live):
        live.gate.once(do)
        deadline = time.monotonic() + PATIENCE_S
        while _trains_elsewhere(live) and not done.done():
            if time.monotonic() > deadline:
                raise NoGraphError(f"no step has ended within {PATIENCE_S:g} s; try again")
            # In short turns, since a training that ends does not set the result.
            wait([done], TURN_S)  # the training may end meanwhile
    live.observer.steps.between_steps(do)  # no step begins meanwhile
    do()
    return done.result()


def _trains_elsewhere(live: RunParts) -> bool:
    return live.gate.is_elsewhere or live.state.trains_in_background
