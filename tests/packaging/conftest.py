"""A copy of what git tracks, and fresh environments to install it into."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


class Environment:
    """A virtual environment without this project's own packages."""

    def __init__(self, folder):
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        self.python = folder / "bin" / "python"
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        self.variables = {
            **kept,
            "VIRTUAL_ENV": str(folder),
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        }

    def run(self, *command, **options):
        """Run a command with this environment's programs first; its output if it succeeds."""
        done = subprocess.run(
            [str(part) for part in command],
            capture_output=True,
            text=True,
            check=False,
            env=self.variables,
            **options,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    def pip(self, *arguments):
        return self.run(
            self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments
        )


@pytest.fixture(scope="session")
def checkout(tmp_path_factory):
    """The project as a clone would have it: tracked files, with their present content."""
    folder = tmp_path_factory.mktemp("checkout")
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    for name in listing.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture
def environment(tmp_path):
    return Environment(tmp_path / "venv")
