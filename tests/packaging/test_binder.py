"""Binder: the recipe is understood, and its build script makes an environment that runs notebook 01."""

import subprocess
import sys

import pytest
import yaml

pytestmark = pytest.mark.timeout(900)


def test_repo2docker_accepts_the_configuration(checkout):
    done = subprocess.run(
        [sys.executable, "-m", "repo2docker", "--no-build", "--debug", "."],
        cwd=checkout, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    recipe = done.stdout + done.stderr
    assert "binder/environment.yml" in recipe
    assert "binder/postBuild" in recipe


def test_the_environment_pins_python_and_a_torch_without_cuda(checkout):
    environment = yaml.safe_load((checkout / "binder" / "environment.yml").read_text())
    assert "python=3.11" in environment["dependencies"]
    assert [d for d in environment["dependencies"] if str(d).startswith("pytorch-cpu")]


@pytest.mark.model
def test_post_build_makes_an_environment_that_runs_the_first_notebook(checkout, environment):
    # There is no conda here; the CPU wheel of the version that is tested stands in for its torch.
    environment.pip("-c", checkout / "constraints.txt", "torch")
    environment.run("bash", "-eu", "binder/postBuild", cwd=checkout)
    environment.run(
        environment.python, "-m", "jupyter", "nbconvert", "--to", "notebook", "--execute",
        "--output-dir", environment.folder, "notebooks/01_first_look.ipynb", cwd=checkout,
    )  # fmt: skip
