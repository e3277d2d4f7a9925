"""A real JupyterLab on a free port, and the Chromium that looks at it."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

CHROMIUM_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LAB_SETTINGS = {
    # Lab asks for news from the network otherwise, which the test for foreign requests would see.
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    # The theme follows the browser's, so that a dark one can be asked for.
    "@jupyterlab/apputils-extension:themes": {"adaptive-theme": True},
}
STARTING, ENDING = 60, 20


def find_chromium():
    """The path of a Chromium, or None."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


@contextlib.contextmanager
def chromium(path):
    """Playwright's browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def jupyterlab(folder, *, python_path=()):
    """Serve a folder, which also takes all that Lab writes; `python_path` is for its kernels. Its address.

    Raises:
        RuntimeError: it did not start.
    """
    folder = Path(folder)
    overrides = folder / "settings"
    overrides.mkdir()
    (overrides / "overrides.json").write_text(json.dumps(LAB_SETTINGS))
    port = _free_port()
    with (folder / "lab.log").open("w") as log:
        process = subprocess.Popen(
            _command(folder, overrides, port),
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={
                **os.environ,
                "JUPYTER_PREFER_ENV_PATH": "1",
                "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
                "JUPYTERLAB_SETTINGS_DIR": str(folder / "user-settings"),
                "JUPYTER_DATA_DIR": str(folder / "data"),
                "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
                "PYTHONPATH": os.pathsep.join(map(str, python_path)),
                # Two kernels whose threads wait for one another on a busy machine are many times slower.
                "OMP_NUM_THREADS": "1",
            },
        )
        try:
            address = f"http://127.0.0.1:{port}"
            _wait_for(address, process, folder / "lab.log")
            yield address
        finally:
            process.terminate()
            process.wait(ENDING)


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _command(folder, overrides, port):
    return [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--allow-root",
        "--ip=127.0.0.1",
        f"--port={port}",
        "--ServerApp.port_retries=0",
        "--IdentityProvider.token=",
        "--ServerApp.disable_check_xsrf=True",
        f"--ServerApp.root_dir={folder}",
        f"--LabApp.app_settings_dir={overrides}",
        "--LabApp.news_url=",
        "--LabApp.extension_manager=readonly",
    ]


def _wait_for(address, process, log):
    deadline = time.monotonic() + STARTING
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(f"{address}/api/status", timeout=1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()[-2000:]}")
