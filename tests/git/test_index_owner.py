"""An index names the owner of files that git sees in the sandbox, and is otherwise the same."""

import os

import pytest

from crew.git.task_repository.index_owner import unlike_numbers, with_numbers, with_owner


def entries(person) -> dict[str, str]:
    """What git reads of each entry: all numbers by the file's name."""
    shown = person.git("ls-files", "--debug", "-t").split("\n")
    names = [at for at, line in enumerate(shown) if not line.startswith("  ")]
    ends = [*names[1:], len(shown)]
    return {shown[at]: "\n".join(shown[at + 1 : end]) for at, end in zip(names, ends, strict=True)}


def owned(numbers: str, user: int, group: int) -> str:
    """The numbers that git prints, with another owner."""
    lines = numbers.split("\n")
    at = next(at for at, line in enumerate(lines) if line.startswith("  uid: "))
    lines[at] = f"  uid: {user}\tgid: {group}"
    return "\n".join(lines)


def format_4(person):
    person.git("update-index", "--index-version", "4")


def extended_entries(person):
    person.write("later.txt", "later\n")
    person.git("add", "--intent-to-add", "later.txt")
    person.git("update-index", "--skip-worktree", "b.txt")


def extended_entries_in_format_4(person):
    extended_entries(person)
    format_4(person)


def no_checksum(person):
    person.git("-c", "index.skipHash=true", "-c", "feature.manyFiles=true", "add", "-A")


def as_it_is(person):
    del person


@pytest.mark.parametrize(
    "arrange", [as_it_is, format_4, extended_entries, extended_entries_in_format_4, no_checksum]
)
def test_every_entry_has_the_owner_and_its_other_numbers(person, arrange):
    person.commit({f"{'deep/' * depth}file{depth}": "x\n" for depth in range(1, 12)})
    arrange(person)
    before, file = entries(person), person.path / ".git" / "index"
    file.write_bytes(with_owner(file.read_bytes(), 1234, 5678))
    assert len(before) >= 14
    assert entries(person) == {name: owned(numbers, 1234, 5678) for name, numbers in before.items()}
    person.git("fsck", "--no-dangling")


def test_a_damaged_index_stays_as_it_is(person):
    whole = (person.path / ".git" / "index").read_bytes()
    for bad in (whole[:-1] + bytes([whole[-1] ^ 1]), b"X" * len(whole), whole[:-20] + b"\1" * 20):
        assert with_owner(bad, 1, 2) == bad
        assert with_numbers(bad, {"a.txt": (person.path / "a.txt").stat()}) == bad


def test_an_index_with_longer_ids_is_rewritten_too(person, tmp_path):
    person.git("init", "-q", "--object-format=sha256", str(tmp_path / "other"))
    other = type(person)(tmp_path / "other")
    other.commit({"file": "x\n", "sub/file": "y\n"})
    before, file = entries(other), other.path / ".git" / "index"
    file.write_bytes(with_owner(file.read_bytes(), 1234, 5678))
    assert entries(other) == {name: owned(numbers, 1234, 5678) for name, numbers in before.items()}


@pytest.mark.parametrize(
    "arrange", [as_it_is, format_4, extended_entries, extended_entries_in_format_4, no_checksum]
)
def test_the_numbers_of_some_files_are_those_that_git_would_write(person, arrange):
    person.commit({f"{'deep/' * depth}file{depth}": "x\n" for depth in range(1, 12)})
    arrange(person)
    before, file = entries(person), person.path / ".git" / "index"
    names = ("a.txt", "deep/deep/file2")
    for name in names:
        os.utime(person.path / name, (1, 1))
    found = {name: (person.path / name).stat() for name in names}
    assert unlike_numbers(file.read_bytes(), found) == {*names}
    assert unlike_numbers(file.read_bytes(), {"no such": found["a.txt"]}) == {"no such"}
    file.write_bytes(with_numbers(file.read_bytes(), found))
    assert unlike_numbers(file.read_bytes(), found) == frozenset()
    ours = entries(person)
    person.git("update-index", "-q", "--refresh")
    assert entries(person) == ours
    assert {name for name in ours if ours[name] != before[name]} == {f"H {one}" for one in names}
