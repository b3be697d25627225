"""Draws the packages and the loop of crew from its sources, as `docs/architecture.svg`.

The rows are the layers that the import linter enforces, the text in a box is the first sentence of
the package, the doors are found in its imports, and the loop names the files that define its parts.
"""

import ast
import textwrap
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
LOOP = (  # what it is, how it is called, and the package that must define it
    ("the state", "World", "domain"),
    ("plan", "plan", "domain"),
    ("do", "Engine", "runner"),
    ("record", "record", "store"),
    ("the next state", "apply", "domain"),
)
DOORS = {  # a word in the code, and where it leads
    "import sqlite3": "SQLite",
    "import subprocess": "processes",
    "os.posix_spawn": "processes",
    "import uvicorn": "HTTP, on loopback",
    "import urllib.request": "HTTP, to [notify] urls",
}
REPEATED = "The runner repeats this. After a crash the next runner starts at the first box."
BELOW = "The packages: each imports only those below it. An arrow is a way to the outside."
WIDTH, EDGE, GAP, LINE = 956, 24, 12, 16
STYLE = """
  text { font: 13px ui-sans-serif, system-ui, "Segoe UI", Helvetica, sans-serif; fill: #1f2328 }
  .name { font-weight: 600; font-size: 15px }
  .small, .door { font-size: 11.5px; fill: #59636e }
  .door { fill: #0550ae }
  .box { fill: #f6f8fa; stroke: #d1d9e0 }
  .part { fill: #ddf4ff; stroke: #54aeff }
  .arrow { fill: none; stroke: #59636e; stroke-width: 1.5 }
  .head { fill: #59636e }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc }
    .small { fill: #9198a1 }
    .door { fill: #79c0ff }
    .box { fill: #151b23; stroke: #3d444d }
    .part { fill: #0c2d6b; stroke: #1f6feb }
    .arrow { stroke: #9198a1 }
    .head { fill: #9198a1 }
  }
"""


@dataclass(frozen=True)
class Package:
    name: str
    purpose: str
    rooms: dict[str, str]
    doors: tuple[str, ...]


def picture() -> str:
    loop, below = _loop(EDGE)
    layers, end = _layers(below + 40)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {end + EDGE}" role="img">\n'
        f"<title>The architecture of crew</title>\n<style>{STYLE}</style>\n"
        f"{''.join(loop)}{''.join(layers)}</svg>\n"
    )


def layers() -> list[list[Package]]:
    """The packages as the import linter orders them, the highest first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    whole = next(c for c in contracts["contracts"] if c["type"] == "layers" and _is_whole(c))
    rows = [layer.replace(":", "|").split("|") for layer in whole["layers"]]
    return [[_package(name.strip()) for name in row] for row in rows]


def _is_whole(contract: dict[str, list[str]]) -> bool:
    return not contract.get("containers") and any("crew.domain" in x for x in contract["layers"])


def _package(name: str) -> Package:
    path = SOURCE / name.replace(".", "/")
    files = sorted(path.rglob("*.py")) or [path.with_suffix(".py")]
    rooms = {file.parent.name: _purpose(file) for file in sorted(path.glob("*/__init__.py"))}
    code = "\n".join(file.read_text() for file in files)
    doors = dict.fromkeys(door for word, door in DOORS.items() if word in code)
    first = path / "__init__.py" if path.is_dir() else files[0]
    return Package(name.removeprefix("crew."), _purpose(first), rooms, tuple(doors))


def _purpose(file: Path) -> str:
    docstring = ast.get_docstring(ast.parse(file.read_text()))
    if not docstring:
        raise SystemExit(f"{file} does not say what it is for")
    return docstring.split("\n\n")[0].replace("\n", " ").replace("`", "").rstrip(".")


def _defined_in(name: str, package: str) -> str:
    """The file of the one definition of that name in the package."""
    found = [
        file
        for file in sorted((SOURCE / "crew" / package).rglob("*.py"))
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name == name
    ]
    if len(found) != 1:
        raise SystemExit(f"{package} defines {name} in {len(found)} files; correct LOOP here")
    return found[0].relative_to(SOURCE / "crew").as_posix()


def _loop(top: int) -> tuple[list[str], int]:
    """The boxes of the loop in a row, with arrows between them and one back to the first."""
    width = _share(len(LOOP), 36)
    drawn, y, height = [], top + 8, 76
    for number, (step, name, package) in enumerate(LOOP):
        x = EDGE + number * (width + 36)
        file = _defined_in(name, package)
        drawn += [_box(x, y, width, height, "part"), _text(x + 12, y + 24, step, "name")]
        drawn += [_text(x + 12, y + 44, name), _text(x + 12, y + 62, file, "small")]
        if number:
            drawn.append(_arrow(f"M{x - 36} {y + height // 2}h28", x - 1, y + height // 2, "right"))
    last, bottom = WIDTH - EDGE - width // 2, y + height
    path = f"M{last} {bottom}v18H{EDGE + width // 2}v-10"
    drawn.append(_arrow(path, EDGE + width // 2, bottom + 1, "up"))
    drawn.append(_text(EDGE, bottom + 40, REPEATED, "small"))
    return drawn, bottom + 46


def _layers(top: int) -> tuple[list[str], int]:
    drawn, y = [_text(EDGE, top - GAP, BELOW, "small")], top
    for row in layers():
        width = _share(len(row), GAP)
        contents = [list(_lines(package, width)) for package in row]
        height = 16 + max(map(len, contents)) * LINE + 12
        for number, lines in enumerate(contents):
            x = EDGE + number * (width + GAP)
            drawn.append(_box(x, y, width, height, "box"))
            for line, (style, text) in enumerate(lines):
                name, _, purpose = text.rpartition("\t")
                drawn.append(_text(x + 12, y + 24 + line * LINE, name or purpose, style))
                if name:
                    drawn.append(_text(x + 92, y + 24 + line * LINE, purpose, style))
        y += height + GAP
    return drawn, y - GAP


def _share(count: int, gap: int) -> int:
    """The width of each box where this many fill the picture."""
    return (WIDTH - 2 * EDGE - (count - 1) * gap) // count


def _lines(package: Package, width: int) -> Iterator[tuple[str, str]]:
    room = (width - 24) // 7
    yield "name", package.name
    yield from (("", text) for text in textwrap.wrap(package.purpose, room))
    if width > WIDTH // 2:
        yield from (("small", f"{name}\t{purpose}") for name, purpose in package.rooms.items())
    else:
        yield from (("small", text) for text in textwrap.wrap(", ".join(package.rooms), room))
    if package.doors:
        doors = f"→ {', '.join(package.doors)}"
        yield from (("door", text) for text in textwrap.wrap(doors, room))


def _box(x: int, y: int, width: int, height: int, style: str) -> str:
    size = f'width="{width}" height="{height}"'
    return f'<rect class="{style}" x="{x}" y="{y}" {size} rx="6"/>\n'


def _text(x: int, y: int, text: str, style: str = "") -> str:
    kind = f' class="{style}"' if style else ""
    return f'<text{kind} x="{x}" y="{y}">{escape(text)}</text>\n'


def _arrow(path: str, x: int, y: int, direction: str) -> str:
    """A line and its head, whose tip is at x, y."""
    tips = {"right": f"M{x} {y}l-8 -5v10z", "up": f"M{x} {y}l-5 8h10z"}
    return f'<path class="arrow" d="{path}"/><path class="head" d="{tips[direction]}"/>\n'
