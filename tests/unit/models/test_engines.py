"""Asking for engines leaves the process as it was."""

import subprocess
import sys

import pytest

CODE = """
import resource
before = resource.getrlimit(resource.RLIMIT_NOFILE)
from cartoolkit.models import engine_status
print(engine_status("mlx").usable, resource.getrlimit(resource.RLIMIT_NOFILE) == before)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, before[1]))
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limits")
def test_asking_for_mlx_leaves_the_limit_of_open_files_alone():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "64"]
