"""The attribute files of a commit, in a directory that merges use."""

from pathlib import Path

from crew.git.merges import attributes
from crew.git.merges.attributes import attributes_worktree
from crew.git.repository import commit_of


def files_in(folder):
    return {
        str(file.relative_to(folder)): file.read_text()
        for file in folder.rglob("*")
        if file.is_file()
    }


def test_all_attribute_files_and_no_others_are_there(repo, person):
    wanted = {".gitattributes": "*.md merge=union\n", "deep/er/.gitattributes": "* -text\n"}
    person.commit({**wanted, "deep/er/my.gitattributes": "x\n", "deep/x": "x\n"})
    folder = attributes_worktree(repo, commit_of(repo, "main"))
    assert files_in(folder) == wanted
    assert attributes_worktree(repo, commit_of(repo, "main")) == folder
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    person.git("rm", "-q", "deep/er/.gitattributes")
    person.commit({".gitattributes": "*.txt merge=union\n"})
    other = attributes_worktree(repo, commit_of(repo, "main"))
    assert files_in(other) == {".gitattributes": "*.txt merge=union\n"}
    assert files_in(attributes_worktree(repo, commit_of(repo, "main~1"))) == wanted


def test_a_faster_process_leaves_nothing_half_made(repo, person, monkeypatch):
    person.commit({".gitattributes": "*.md merge=union\n"})
    was_made = []

    def too_late(making, folder):
        was_made.append(files_in(making))
        raise FileExistsError(folder)

    monkeypatch.setattr(Path, "rename", too_late)
    folder = attributes_worktree(repo, commit_of(repo, "main"))
    assert was_made == [{".gitattributes": "*.md merge=union\n"}]
    assert list(folder.parent.iterdir()) == []
    attributes._last.clear()
