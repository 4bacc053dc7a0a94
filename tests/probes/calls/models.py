"""Models whose modules are called several times in a forward, and quantities of such calls."""

from __future__ import annotations

from torch import Tensor, nn

from tests.probes.oracles import Noted

__all__ = ["CalledTwice", "CallsItself", "Recurrent", "Recursive", "gain"]


class CalledTwice(Noted):
    """One layer, used twice with an activation between.

    With ``factor`` every call's input, output and gradient differ in size.
    """

    def __init__(self, factor: float = 1.0) -> None:
        super().__init__()
        self.part, self._factors = nn.Linear(4, 4), (1.0, factor)

    def forward(self, x: Tensor) -> Tensor:
        for factor in self._factors:
            given = self.note("input", x if factor == 1.0 else factor * x)
            x = self.note("output", self.part(given)).tanh()
        return x


class CallsItself(nn.Module):
    """A part that calls itself: the innermost call is the first to return."""

    def __init__(self, notes_at: Noted, depth: int, factor: float) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self._notes_at, self._depth, self._factor = [notes_at], depth, factor

    def forward(self, x: Tensor, depth: int | None = None) -> Tensor:
        left = self._depth if depth is None else depth
        note = self._notes_at[0].note
        note("input", x)
        inner = self(self._factor * self.linear(x).tanh(), left - 1) if left else x
        return note("output", self.linear(inner) * 2)


class Recursive(Noted):
    """Calls a part that calls itself."""

    def __init__(self, depth: int = 2, factor: float = 1.0) -> None:
        super().__init__()
        self.part = CallsItself(self, depth, factor)

    def forward(self, x: Tensor) -> Tensor:
        return self.part(x)


class Recurrent(nn.Module):
    """Layers around one of torch's own recurrent ones."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.gru = nn.Linear(4, 4), nn.GRU(4, 3, batch_first=True)
        self.head = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.gru(self.stem(x))[0])


def gain(input: Tensor, output: Tensor) -> Tensor:
    return output.norm() / input.norm()
