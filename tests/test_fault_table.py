"""The table of the fault suites: a row for each kind of fault, and a sum without doubles."""

from fault_table import Survived, table


def test_a_history_counts_in_the_row_of_each_of_its_faults_and_once_in_the_sum():
    sound = Survived("a", {"gate killed": 2, "runner killed": 3}, is_sound=True, tasks=4)
    broken = Survived("b", {"runner killed": 5}, tasks=6, lost=1, detail=["the work of 1"])
    lines = table([broken.row, sound.row])
    cells = {line[:13].strip(): line[13:].split() for line in lines[1:4]}
    assert cells == {
        "runner killed": ["8", "3", "10", "1", "0", "0", "0"],
        "gate killed": ["2", "2", "4", "0", "0", "0", "0"],
        "all": ["10", "5", "10", "1", "0", "0", "0"],
    }
    assert lines[-1] == "b: 5 runner killed, the work of 1"
