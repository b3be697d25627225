"""What a task's branch has of its own, beside merges of what landed."""

import pytest

from crew.git.merges.own_changes import MOST_MERGES, only_merged

TEXT = "".join(f"{n}\n" for n in range(1, 31))


class Clash:
    """Two sides of a file that clash in two places; `mine` is checked out."""

    def __init__(self, person) -> None:
        self.person = person
        self.base = person.commit({"f.txt": TEXT, "calm.txt": "calm\n", "f.bin": "a\0a"}, "base")
        self.landed = self._side("landed", {"new.txt": "landed\n"})
        self.mine = self._side("mine", {})

    def _side(self, word: str, more: dict[str, str]) -> str:
        self.person.git("switch", "-q", "--detach", self.base)
        text = TEXT.replace("10\n", f"10 {word}\n").replace("20\n", f"20 {word}\n")
        files = {"f.txt": text, "f.bin": f"a\0{word}", **more}
        return self.person.commit(files, word)

    def merged(self, text: str, **files: str) -> str:
        """The merge with this result of the conflict; a binary file keeps this side."""
        self.person.git("merge", "-q", "--no-commit", self.landed, check=False)
        self.person.git("checkout", "-q", "--ours", "f.bin")
        return self.person.commit({"f.txt": text, **files, "f.bin": "a\0mine"}, "merged")

    def only_merged(self, repo, head: str) -> bool:
        return only_merged(repo, before=self.mine, head=head, landed=self.landed)


@pytest.fixture
def clash(person) -> Clash:
    return Clash(person)


def resolved(ten: str, twenty: str) -> str:
    return TEXT.replace("10\n", ten).replace("20\n", twenty)


@pytest.mark.parametrize(
    ("ten", "twenty"),
    [
        ("10 mine\n10 landed\n", "20 landed\n20 mine\n"),
        ("10 both\n", ""),
        ("10 mine\n", "20 mine\n"),
    ],
)
def test_a_resolved_conflict_is_nothing_of_its_own(repo, clash, ten, twenty):
    assert clash.only_merged(repo, clash.merged(resolved(ten, twenty)))


def test_the_same_commit_has_nothing_new(repo, clash):
    assert clash.only_merged(repo, clash.mine)


@pytest.mark.parametrize("text", [
    resolved("10 both\n", "20 both\n").replace("15\n", "15 too\n"),
    resolved("10 both\n", "20 both\n").replace("1\n", "one\n", 1),
    resolved("10 both\n", "20 both\n") + "more\n",
    resolved("10 both\n", "20 both\n").replace("25\n", ""),
    "10 both\n",
])  # fmt: skip
def test_lines_beside_the_conflict_are_its_own(repo, clash, text):
    assert not clash.only_merged(repo, clash.merged(text))


def test_another_file_in_the_merge_is_its_own(repo, clash):
    head = clash.merged(resolved("10 both\n", "20 both\n"), **{"calm.txt": "not calm\n"})
    assert not clash.only_merged(repo, head)


def test_a_landed_file_that_the_merge_drops_is_its_own(repo, clash):
    head = clash.merged(resolved("10 both\n", "20 both\n"), **{"new.txt": ""})
    assert not clash.only_merged(repo, head)


def test_a_commit_after_the_merge_or_without_one_is_its_own(repo, clash, person):
    person.git("switch", "-q", "--detach", clash.mine)
    assert not clash.only_merged(repo, person.commit({"calm.txt": "x\n"}, "own"))
    person.git("switch", "-q", "--detach", clash.mine)
    clash.merged(resolved("10 both\n", "20 both\n"))
    assert not clash.only_merged(repo, person.commit({"calm.txt": "x\n"}, "own"))


def test_a_binary_file_that_is_neither_side_is_its_own(repo, clash, person):
    person.git("merge", "-q", "--no-commit", clash.landed, check=False)
    text = resolved("10 both\n", "20 both\n")
    assert not clash.only_merged(repo, person.commit({"f.txt": text, "f.bin": "a\0b"}, "m"))


def test_a_merge_of_what_did_not_land_is_its_own(repo, clash, person):
    person.git("switch", "-q", "--detach", clash.base)
    elsewhere = person.commit({"else.txt": "x\n"}, "not landed")
    person.git("switch", "-q", "--detach", clash.mine)
    person.git("merge", "-q", "--no-edit", elsewhere)
    assert not clash.only_merged(repo, person.git("rev-parse", "HEAD").strip())


def test_a_rewritten_branch_is_its_own(repo, clash, person):
    person.git("switch", "-q", "--detach", clash.landed)
    assert not clash.only_merged(repo, person.commit({"f.txt": "x\n"}, "again"))


def test_of_very_many_merges_none_is_looked_at(repo, clash, person):
    before, heads, landed = clash.base, [clash.base], clash.landed
    for number in range(MOST_MERGES + 1):
        person.git("switch", "-q", "--detach", landed)
        landed = person.commit({}, f"landed {number}")
        person.git("switch", "-q", "--detach", heads[-1])
        person.git("merge", "-q", "--no-ff", "--no-edit", landed)
        heads.append(person.git("rev-parse", "HEAD"))
    assert only_merged(repo, before=before, head=heads[-2], landed=landed)
    assert not only_merged(repo, before=before, head=heads[-1], landed=landed)


def test_a_clean_merge_is_nothing_of_its_own(repo, clash, person):
    person.git("switch", "-q", "--detach", clash.base)
    before = person.commit({"mine.txt": "x\n"}, "apart")
    person.git("merge", "-q", "--no-edit", clash.landed)
    head = person.git("rev-parse", "HEAD").strip()
    assert only_merged(repo, before=before, head=head, landed=clash.landed)
    person.git("commit", "-q", "--amend", "--no-edit", "--allow-empty")
    (person.path / "mine.txt").write_text("y\n")
    person.git("commit", "-q", "-a", "--amend", "--no-edit")
    head = person.git("rev-parse", "HEAD").strip()
    assert not only_merged(repo, before=before, head=head, landed=clash.landed)
