"""A merge in which one side wins: line by line where that is possible, else as a whole."""

import pytest

from crew.git.merges.merges import Merged, merge
from crew.git.repository import find_repository
from git.people import Person

BASE = "".join(f"line {number}\n" for number in range(20))


@pytest.fixture
def sides(person):
    """Commits `onto` and `head`, each with its own changes of the same base."""

    def made(onto, head, *, base=None, gone=()):
        start = person.commit({"a.txt": BASE, **(base or {})})
        found = []
        for name, files in (("onto", onto), ("head", head)):
            person.git("switch", "-q", "-c", name, start)
            for path in gone if name == "onto" else ():
                person.git("rm", "-q", path)
            found.append(person.commit(files))
        return found

    return made


def merged(repo, person, sides, favours):
    onto, head = sides
    done = merge(repo, onto=onto, head=head, message="m", at=1, favours=favours)
    assert isinstance(done, Merged)
    assert person.git("rev-list", "--parents", "-1", done.commit).split()[1:] == [onto, head]
    again = merge(repo, onto=onto, head=head, message="m", at=1, favours=favours)
    assert again == done
    return lambda path: person.git("show", f"{done.commit}:{path}", check=False)


@pytest.mark.parametrize(("favours", "wins"), [("mine", "head"), ("theirs", "onto")])
def test_a_side_wins_only_where_both_changed_the_same_lines(repo, person, sides, favours, wins):
    onto = BASE.replace("line 3\n", "onto 3\n").replace("line 15\n", "onto 15\n")
    head = BASE.replace("line 3\n", "head 3\n").replace("line 9\n", "head 9\n")
    show = merged(repo, person, sides({"a.txt": onto}, {"a.txt": head, "new": "n\n"}), favours)
    lines = show("a.txt").splitlines()
    assert (lines[3], lines[9], lines[15]) == (f"{wins} 3", "head 9", "onto 15")
    assert show("new") == "n"


@pytest.mark.parametrize(("favours", "left"), [("mine", "changed"), ("theirs", "")])
def test_a_file_that_one_side_removed_stays_or_goes_with_the_winner(
    repo, person, sides, favours, left
):
    both = sides({}, {"b.txt": "changed\n"}, base={"b.txt": "b\n"}, gone=["b.txt"])
    assert merged(repo, person, both, favours)("b.txt") == left


@pytest.mark.parametrize("mark", ["", "\0"])
def test_files_that_both_added_and_binary_ones_are_the_winners(repo, person, sides, mark):
    both = sides({"both": f"onto{mark}\n"}, {"both": f"head{mark}\n"})
    assert merged(repo, person, both, "mine")("both").startswith("head")
    assert merged(repo, person, both, "theirs")("both").startswith("onto")


def test_a_file_is_removed_also_where_ids_are_longer(tmp_path):
    person = Person(tmp_path / "repo")
    person.path.mkdir()
    person.git("init", "-q", "--object-format=sha256")
    start = person.commit({"a.txt": BASE, "b.txt": "b\n"})
    person.git("rm", "-q", "b.txt")
    onto = person.commit()
    person.git("switch", "-q", "--detach", start)
    head = person.commit({"b.txt": "changed\n"})
    repo = find_repository(person.path)
    assert merged(repo, person, (onto, head), "theirs")("b.txt") == ""
