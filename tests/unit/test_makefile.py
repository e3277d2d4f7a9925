"""`make lab`: what would be installed, by make's own dry run."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def installed_by_make_lab(venv, engines):
    """The pip commands that `make lab` would run."""
    command = ["make", "--dry-run", "lab", f"VENV={venv}", f"ENGINES={engines}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if "pip install" in line], done.stdout


def test_other_engines_are_installed_though_make_lab_has_run(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    first, said = installed_by_make_lab(tmp_path, "torch")
    assert '".[torch,lab]"' in first[0]
    stamp = next(line for line in said.splitlines() if line.startswith("touch ")).split()[1]
    Path(stamp).touch()
    after_the_project = (ROOT / "pyproject.toml").stat().st_mtime + 3600
    os.utime(stamp, (after_the_project, after_the_project))
    os.utime(tmp_path / "bin" / "python", (0, 0))
    assert installed_by_make_lab(tmp_path, "torch")[0] == []
    assert '".[torch,gguf,lab]"' in installed_by_make_lab(tmp_path, "torch,gguf")[0][0]
