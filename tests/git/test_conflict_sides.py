"""Both sides of a conflict as git knows them."""

from crew.git.merges.conflict_sides import conflict_sides
from crew.git.merges.merges import MergeConflict, Merged, merge

TEXT = "".join(f"{n}\n" for n in range(1, 21))


def in_conflict(person, repo):
    """Task 3 landed by a merge of crew's, and somebody else's work began before that."""
    base = person.commit({"f.txt": TEXT, "other.txt": "o\n"}, "base")
    person.git("switch", "-q", "--detach", base)
    three = person.commit({"f.txt": TEXT.replace("10\n", "landed\n")}, "by three")
    message = "Merge crew-3: Sort names\n\nTask: 3\nRun: 3.1 (claude)\nSteps: 1\n"
    landed = merge(repo, onto=base, head=three, message=message, at=1.0)
    assert isinstance(landed, Merged)
    person.git("switch", "-q", "--detach", base)
    mine = person.commit({"f.txt": TEXT.replace("10\n", "mine\n")}, "by me")
    return base, landed.commit, mine


def test_it_has_the_base_both_sides_and_the_task_that_landed(repo, person):
    base, landed, mine = in_conflict(person, repo)
    sides = conflict_sides(repo, ours=mine, theirs=landed, paths=("f.txt",))
    (hunks,) = sides.hunks
    lines = hunks.text.split("\n")
    assert lines[:3] == ["7", "8", "9"]
    assert lines[3].startswith("<<<<<<< ")
    assert [lines[4], lines[6], lines[8]] == ["mine", "10", "landed"]
    assert lines[-3:] == ["11", "12", "13"]
    assert (sides.base, [one.task for one in sides.landed]) == (base, ["3"])


def test_a_file_that_quotes_a_conflict_marker_has_hunks(repo, person):
    base = person.commit({"f.txt": f"<<<<<<< quoted\n{TEXT}"}, "base")
    sides = []
    for side in ("mine", "theirs"):
        person.git("switch", "-q", "--detach", base)
        sides.append(person.commit({"f.txt": f"<<<<<<< quoted\n{TEXT}{side}\n"}, side))
    (hunks,) = conflict_sides(repo, ours=sides[0], theirs=sides[1], paths=("f.txt",)).hunks
    assert {"mine", "theirs"} <= set(hunks.text.split("\n"))


def test_a_person_has_no_task_and_other_files_do_not_matter(repo, person):
    _base, landed, mine = in_conflict(person, repo)
    person.git("switch", "-q", "--detach", landed)
    person.commit({"other.txt": "p\n"}, "elsewhere")
    theirs = person.commit({"f.txt": TEXT.replace("10\n", "by hand\n")}, "by hand")
    sides = conflict_sides(repo, ours=mine, theirs=theirs, paths=("f.txt",))
    assert [one.task for one in sides.landed] == ["", "3"]
    assert sides.landed[0].subject.endswith(" by hand")


def test_what_is_gone_or_no_text_has_no_hunks(repo, person):
    base = person.commit({"f.bin": "a\0b", "gone.txt": "x\n"}, "base")
    person.git("switch", "-q", "--detach", base)
    mine = person.commit({"f.bin": "a\0c", "gone.txt": "y\n"}, "mine")
    person.git("switch", "-q", "--detach", base)
    person.git("rm", "-q", "gone.txt")
    theirs = person.commit({"f.bin": "a\0d"}, "theirs")
    conflict = merge(repo, onto=theirs, head=mine, message="m", at=1.0)
    assert isinstance(conflict, MergeConflict)
    sides = conflict_sides(repo, ours=mine, theirs=theirs, paths=conflict.paths)
    assert sides.hunks == ()


def test_no_conflict_has_no_hunks(repo, person):
    head = person.git("rev-parse", "HEAD")
    assert conflict_sides(repo, ours=head, theirs=head, paths=("f.txt",)).hunks == ()
