"""What every machine must keep: its seed's table, reasons for more, refusals, and a way to rest."""

from typing import ClassVar

import pytest

from crew.domain.kernel.errors import InvalidTransition
from crew.domain.kernel.machine import Machine


class MachineContract:
    """`seed` is copied from the seed document, not from the machine.

    `rests` are the states in which nothing has to happen any more, `final` those nothing leaves.
    """

    machine: ClassVar[Machine]
    states: ClassVar[tuple[str, ...]]
    seed: ClassVar[tuple[tuple[str, str, str], ...]]
    rests: ClassVar[tuple[str, ...]]
    final: ClassVar[tuple[str, ...]]

    def test_the_states_are_those_of_the_seed(self):
        assert set(self.machine.states) == set(self.states)

    def test_the_table_is_the_seed_and_whatever_else_says_why_it_stands_there(self):
        ours = {(m.source, m.target, m.trigger): m.added for m in self.machine.moves}
        assert set(self.seed) <= ours.keys()
        assert all(ours[move] for move in ours.keys() - set(self.seed))
        assert not any(ours[move] for move in self.seed)

    def test_no_move_stands_in_the_table_twice(self):
        moves = [(m.source, m.target, m.trigger) for m in self.machine.moves]
        assert len(moves) == len(set(moves))

    def test_a_move_of_the_table_is_allowed_and_every_other_one_is_refused(self):
        table = {(m.source, m.target, m.trigger) for m in self.machine.moves}
        triggers = {m.trigger for m in self.machine.moves} | {"nonsense"}
        states = self.machine.states
        for move in ((s, t, by) for s in states for t in states for by in triggers):
            source, target, trigger = move
            if move in table:
                self.machine.check(source=source, target=target, trigger=trigger)
                continue
            with pytest.raises(InvalidTransition) as caught:
                self.machine.check(source=source, target=target, trigger=trigger)
            refusal = caught.value
            ways = {f"{t} by {by!r}" for s, t, by in table if s == source}
            assert (refusal.source, refusal.target, set(refusal.allowed)) == (source, target, ways)
            assert all(way in refusal.hint for way in ways)

    def test_a_state_that_nobody_knows_goes_nowhere(self):
        with pytest.raises(InvalidTransition):
            self.machine.check(source="asleep", target=self.machine.first, trigger="woken")

    def test_every_state_can_be_reached_and_leads_to_rest(self):
        assert _reach(self.machine, self.machine.first) == set(self.states)
        for state in self.states:
            assert _reach(self.machine, state) & set(self.rests), f"{state} leads nowhere"

    def test_a_final_state_stays_final(self):
        assert {s for s in self.machine.states if self.machine.is_final(s)} == set(self.final)
        assert all(self.machine.moves_from(state) == () for state in self.final)


def _reach(machine: Machine, start: str) -> set[str]:
    reached, todo = {start}, [start]
    while todo:
        new = {m.target for m in machine.moves_from(todo.pop())} - reached
        reached |= new
        todo += new
    return reached
