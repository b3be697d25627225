"""Finds `.crew/` without starting git, for commands that must answer at once."""

from pathlib import Path

from crew.domain.kernel.errors import UsageError


def find_folder(start: Path) -> Path | None:
    """The `.crew/` of the repository around `start`; None if only git can find it.

    A worktree, in which agents work, belongs to the crew of its main checkout.
    """
    for folder in (start, *start.parents):
        git_dir = folder / ".git"
        if git_dir.is_dir():
            return _crew_in(folder)
        if git_dir.is_file():
            return _crew_of_owner(folder) or _crew_of_main(git_dir)
    return None


def load_folder(start: Path) -> Path:
    """The same, or an error that names what is missing."""
    found = find_folder(start.resolve())
    if found is not None:
        return found
    # Git supports more layouts than the two above.
    from crew.git.repository import find_repository  # noqa: PLC0415 - slow, and rarely needed

    root = find_repository(start).root
    if _crew_in(root) is None:
        raise UsageError(
            f"{root} has no crew yet",
            hint="run `crew init` there; your files stay as they are",
            code="no_crew",
        )
    return root / ".crew"


def _crew_in(root: Path) -> Path | None:
    folder = root / ".crew"
    return folder if (folder / "crew.db").exists() else None


def _crew_of_owner(folder: Path) -> Path | None:
    # Only a worktree needs it, and most commands start in the main checkout.
    from crew.git.task_repository.agent_refs import main_repository_of  # noqa: PLC0415

    main = main_repository_of(folder)
    return _crew_in(main.parent) if main is not None and main.name == ".git" else None


def _crew_of_main(pointer: Path) -> Path | None:
    try:
        own = pointer.parent / pointer.read_text().removeprefix("gitdir:").strip()
        common = (own / (own / "commondir").read_text().strip()).resolve()
    except (OSError, UnicodeDecodeError):
        return None
    return _crew_in(common.parent) if common.name == ".git" else None
