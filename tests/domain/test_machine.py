"""The kernel of the machines."""

import pytest

from crew.domain.kernel.errors import InvalidTransition
from crew.domain.kernel.machine import Machine, Move
from refusals import raises_code

LAMP = Machine(
    name="lamp",
    first="off",
    moves=(
        Move(source="off", target="on", trigger="pressed"),
        Move(source="on", target="off", trigger="pressed"),
        Move(source="on", target="broken", trigger="dropped"),
    ),
)


def test_the_states_are_told_in_the_order_in_which_the_table_names_them():
    assert LAMP.states == ("off", "on", "broken")


def test_a_machine_without_moves_has_its_first_state_and_that_is_final():
    stone = Machine(name="stone", first="lying", moves=())
    assert stone.states == ("lying",)
    assert stone.is_final("lying")


def test_the_right_states_by_the_wrong_trigger_are_refused():
    with raises_code(InvalidTransition, "invalid_transition", "lamp", "off", "on", "dropped"):
        LAMP.check(source="off", target="on", trigger="dropped")


def test_a_refusal_says_what_would_be_allowed():
    with pytest.raises(InvalidTransition) as caught:
        LAMP.check(source="on", target="on", trigger="pressed")
    assert caught.value.hint == "from on it can: off by 'pressed', broken by 'dropped'"


def test_a_refusal_in_a_final_state_says_that_it_is_final():
    with pytest.raises(InvalidTransition) as caught:
        LAMP.check(source="broken", target="on", trigger="pressed")
    assert caught.value.hint == "from broken it can: nothing, it is final"
