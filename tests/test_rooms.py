"""The house: files import from their own room and from rooms above it, as CONTRIBUTING.md lists them."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "skfairrank"
FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def rows():
    """The rooms of each row of the table, from the top."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.split("| room | what belongs there |\n|---|---|\n")[1].split("\n\n")[0]
    return [re.findall(r"`(\w+(?:\.py|/))`", line.split("|")[1]) for line in table.splitlines()]


FLOORS = {room: floor for floor, row in enumerate(rows()) for room in row}


def room_of(parts):
    """`scores.py` or `metrics/`, from the parts of a path or of a module's name below the package."""
    return parts[0] + ("/" if (PACKAGE / parts[0]).is_dir() else ".py")


def imported_rooms(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "skfairrank":
            parts = node.module.split(".")[1:]
            if parts:
                yield room_of(parts)
            else:  # from skfairrank import ...: a module, or what __init__ takes from one
                for alias in node.names:
                    is_module = (PACKAGE / alias.name).is_dir() or (PACKAGE / f"{alias.name}.py").exists()
                    yield room_of([alias.name]) if is_module else "inspection/"


def test_every_file_has_a_room_and_every_room_a_file():
    rooms = {room_of([path.relative_to(PACKAGE).parts[0].removesuffix(".py")]) for path in FILES}
    assert rooms == set(FLOORS)


def test_a_file_imports_from_its_own_room_or_from_above():
    """Rooms of one row may lean on each other one way, which Python itself checks."""
    for path in FILES:
        own = room_of([path.relative_to(PACKAGE).parts[0].removesuffix(".py")])
        below = {room for room in imported_rooms(path) if FLOORS[room] > FLOORS[own]}
        assert not below, f"{path.relative_to(PACKAGE)} imports from {sorted(below)}"
