"""A person who works in a repository with plain git."""

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Person:
    """Somebody who uses plain git in a folder."""

    path: Path

    def git(self, *args, check=True, **kwargs):
        done = subprocess.run(
            ["git", *args], cwd=self.path, capture_output=True, text=True, check=False, **kwargs
        )
        assert done.returncode == 0 or not check, done.stderr
        return done.stdout.strip()

    def write(self, name, content):
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        return file

    def commit(self, files=None, message="work"):
        for name, content in (files or {}).items():
            self.write(name, content)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def tree(self):
        """Every file with its bytes, git's own aside."""
        return {
            str(file.relative_to(self.path)): file.read_bytes()
            for file in sorted(self.path.rglob("*"))
            if file.is_file() and ".git" not in file.relative_to(self.path).parts
        }
