"""An index names the owner of files that git sees in the sandbox, and is otherwise the same."""

import pytest

from crew.git.task_repository.index_owner import with_owner


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


def test_a_damaged_index_or_one_with_other_ids_stays_as_it_is(person):
    whole = (person.path / ".git" / "index").read_bytes()
    for bad in (whole[:-1] + bytes([whole[-1] ^ 1]), b"X" * len(whole), whole[:-20] + b"\1" * 20):
        assert with_owner(bad, 1, 2) == bad
    person.git("init", "-q", "--object-format=sha256", "other")
    (person.path / "other" / "file").write_text("x\n")
    person.git("-C", "other", "add", "file")
    longer = (person.path / "other" / ".git" / "index").read_bytes()
    assert with_owner(longer, 1, 2) == longer
