"""Every page and every pane looks as it looked when a person last looked at it."""

import pytest

from front.tui.sample_crew import make_sample, sample_time
from front.tui.snapshots import FOLDER, SIZES, in_utc, scenes, taken


@pytest.mark.timeout(300)
@pytest.mark.parametrize("size", SIZES)
def test_pages_and_panes_look_as_before(tmp_path, monkeypatch, size):
    """`make snapshots` writes them anew; look at the difference before you commit it."""
    for name in ("TZ", "LOGNAME"):
        monkeypatch.setenv(name, "")  # restores them afterwards
    in_utc()
    with sample_time():
        make_sample(tmp_path / "lamps")
    found = taken(tmp_path / "lamps", size=SIZES[size], names=list(scenes()))
    kept = {path.stem.removesuffix(f"-{size}"): path for path in FOLDER.glob(f"*-{size}.txt")}
    assert sorted(kept) == sorted(found)
    for name, text in found.items():
        assert text == kept[name].read_text(), name
