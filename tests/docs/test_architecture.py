"""The picture of the architecture shows what is in the tree, and every text fits into its box."""

import importlib.util
import re
import xml.etree.ElementTree as ET

import pytest

from docs.pages import ROOT

PICTURE = ROOT / "docs" / "architecture.svg"
WIDEST_PX = {"name": 8.6, "small": 6.4, "door": 6.4, None: 7.2}  # of an average character


@pytest.fixture
def drawing():
    spec = importlib.util.spec_from_file_location("drawing", ROOT / "docs" / "architecture.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def texts(svg):
    return [e for e in ET.fromstring(svg).iter() if e.tag.endswith("}text")]


def test_every_package_is_in_the_picture_with_its_first_sentence(drawing):
    drawn = {package.name: package for row in drawing.layers() for package in row}
    packages = {init.parent.name for init in (ROOT / "src" / "crew").glob("*/__init__.py")}
    assert packages <= set(drawn)
    words = " ".join(text.text for text in texts(PICTURE.read_text()))
    assert all(package.purpose in words for package in drawn.values())
    assert all(room in words for package in drawn.values() for room in package.rooms)


def test_the_doors_are_found_in_the_code_and_the_core_has_none(drawing):
    doors = {package.name: package.doors for row in drawing.layers() for package in row}
    assert doors["domain"] == ()
    assert doors["store"] == ("SQLite",)
    assert "processes" in doors["git"]


def test_a_new_room_and_a_new_door_change_the_picture(drawing, tmp_path, monkeypatch):
    for row in drawing.layers():
        for package in row:
            folder = tmp_path / "crew" / package.name
            folder.mkdir(parents=True)
            (folder / "__init__.py").write_text(f'"""{package.purpose}."""\n')
    room = tmp_path / "crew" / "domain" / "attic"
    room.mkdir()
    (room / "__init__.py").write_text('"""Things of old."""\nimport sqlite3\n')
    for _, name, package in drawing.LOOP:
        with (tmp_path / "crew" / package / "one.py").open("a") as file:
            file.write(f"def {name}(): ...\n")
    monkeypatch.setattr(drawing, "SOURCE", tmp_path)
    shown = drawing.picture()
    assert [name in shown for name in (">attic<", ">Things of old<")] == [True, True]
    (core,) = (p for row in drawing.layers() for p in row if p.name == "domain")
    assert core.doors == ("SQLite",)


def test_every_text_fits_into_its_box():
    boxes = [e for e in ET.fromstring(PICTURE.read_text()).iter() if e.tag.endswith("}rect")]
    edges = [[float(box.get(n)) for n in ("x", "y", "width", "height")] for box in boxes]
    for text in texts(PICTURE.read_text()):
        x, y = float(text.get("x")), float(text.get("y"))
        around = [e for e in edges if e[0] <= x < e[0] + e[2] and e[1] <= y < e[1] + e[3]]
        if around:
            ((left, _, width, _),) = around
            assert x + len(text.text) * WIDEST_PX[text.get("class")] <= left + width, text.text


def test_it_is_readable_in_the_dark():
    style = re.search(r"<style>(.*?)</style>", PICTURE.read_text(), re.DOTALL).group(1)
    light, _, dark = style.partition("@media (prefers-color-scheme: dark)")
    coloured = re.findall(r"^  (\.\w+|text)[^\n]*#", light, re.MULTILINE)
    assert coloured
    assert all(f"{kind} {{" in dark for kind in coloured)
