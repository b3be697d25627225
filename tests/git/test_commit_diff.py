"""Which changes of a commit are files, and which submodules arrive or leave."""

from dataclasses import replace

import pytest

from crew.git.delivery.commit_diff import (
    FileChange,
    arriving_submodules,
    file_changes,
    leaving_submodules,
)

FILE, MODULE = "100644", "160000"


def change(old, new):
    return FileChange(path="x", old_mode=old, old_blob="1", new_mode=new, new_blob="2")


@pytest.mark.parametrize(
    ("old", "new", "arrives", "leaves", "as_file"),
    [
        (None, FILE, False, False, (None, FILE)),
        (FILE, FILE, False, False, (FILE, FILE)),
        (FILE, None, False, False, (FILE, None)),
        (None, MODULE, True, False, None),
        (MODULE, MODULE, True, False, None),
        (FILE, MODULE, True, False, (FILE, None)),
        (MODULE, None, False, True, None),
        (MODULE, FILE, False, True, (None, FILE)),
    ],
)
def test_a_change_concerns_files_and_submodules(old, new, arrives, leaves, as_file):
    one = change(old, new)
    assert bool(arriving_submodules([one])) is arrives
    assert bool(leaving_submodules([one])) is leaves
    modes = as_file and (replace(one, old_mode=as_file[0], new_mode=as_file[1]),)
    assert file_changes([one]) == (modes or ())
