"""A machine: a table of moves between states, which refuses every other move."""

from crew.domain.kernel.errors import InvalidTransition
from crew.domain.kernel.frozen import frozen


@frozen
class Move:
    """One row of a table; `added` is the reason for a move that extends the original rule."""

    source: str
    target: str
    trigger: str
    meaning: str = ""
    added: str = ""


@frozen
class Machine:
    """A named table of moves with its first state."""

    name: str
    first: str
    moves: tuple[Move, ...]

    @property
    def states(self) -> tuple[str, ...]:
        seen = [self.first]
        for move in self.moves:
            seen += [state for state in (move.source, move.target) if state not in seen]
        return tuple(seen)

    def moves_from(self, state: str) -> tuple[Move, ...]:
        return tuple(move for move in self.moves if move.source == state)

    def is_final(self, state: str) -> bool:
        return not self.moves_from(state)

    def check(self, *, source: str, target: str, trigger: str) -> None:
        """Raise `InvalidTransition` unless exactly this move is in the table."""
        for move in self.moves_from(source):
            if move.target == target and move.trigger == trigger:
                return
        allowed = tuple(f"{move.target} by {move.trigger!r}" for move in self.moves_from(source))
        raise InvalidTransition(
            self.name, source=source, target=target, trigger=trigger, allowed=allowed
        )
