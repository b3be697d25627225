"""An index that crew reads itself has the numbers of the files, their marks and folders."""

from crew.git.worktrees import worktree_admin
from crew.git.worktrees.index_file import load_marks, parse_index, read_index


def numbers_on_disk(file):
    found = file.stat()
    mode = 0o100755 if found.st_mode & 0o100 else 0o100644
    inode = found.st_ino & 0xFFFFFFFF
    return (found.st_ctime_ns, found.st_mtime_ns, inode, mode, found.st_size)


def test_the_numbers_of_each_file_are_those_on_disk(repo, person):
    (person.path / "b.txt").chmod(0o755)
    person.commit({"ü": "ü\n"})
    index = read_index(repo.common_dir)
    assert sorted(index.files) == ["a.txt", "b.txt", "sub/c.txt", "ü"]
    for name, numbers in index.files.items():
        assert numbers == numbers_on_disk(person.path / name), name
    assert index.tree == person.git("rev-parse", "HEAD^{tree}")
    assert index.written_ns == (repo.common_dir / "index").stat().st_mtime_ns
    assert index.is_plain


def test_the_folders_of_all_files_are_known_without_the_top(repo, person):
    person.commit({"deep/er/d.txt": "d\n"})
    index = read_index(repo.common_dir)
    for known in (index, None):
        marks = load_marks(person.path, known, None)
        assert marks.folders == {"sub", "deep", "deep/er"}
        assert (marks.assumed, marks.skipped, marks.links) == ((), (), {})


def test_hidden_files_and_links_are_marked_whoever_reads_the_index(repo, person):
    head = person.git("rev-parse", "HEAD")
    person.git("update-index", "--add", "--cacheinfo", f"160000,{head},lib")
    person.git("update-index", "--assume-unchanged", "a.txt")
    person.git("update-index", "--skip-worktree", "b.txt")
    index = read_index(repo.common_dir)
    assert not index.is_plain
    for known in (index, None):
        marks = load_marks(person.path, known, None)
        assert (marks.assumed, marks.skipped, marks.links) == (
            ("a.txt",),
            ("b.txt",),
            {"lib": head},
        )


def test_an_index_that_is_not_a_common_one_is_left_to_git(repo, person, monkeypatch):
    raw = (repo.common_dir / "index").read_bytes()
    assert parse_index(raw) is not None
    for other in (b"", b"DIRC", raw[:-1], raw[:40] + b"x" + raw[41:], b"X" + raw[1:]):
        assert parse_index(other) is None
    monkeypatch.setattr("crew.git.worktrees.index_file.MOST_FILES", 2)
    assert parse_index(raw) is None
    monkeypatch.setattr("crew.git.worktrees.index_file.MOST_FILES", 3)
    assert parse_index(raw) is not None
    person.git("update-index", "--index-version", "4")
    assert read_index(repo.common_dir) is None
    assert read_index(repo.common_dir / "missing") is None


def test_refs_are_plain_unless_git_keeps_them_in_tables_or_worktrees_have_settings(repo):
    assert worktree_admin.has_plain_refs(repo)
    for name in ("config.worktree", "reftable"):
        (repo.common_dir / name).mkdir()
        assert not worktree_admin.has_plain_refs(repo)
        (repo.common_dir / name).rmdir()
