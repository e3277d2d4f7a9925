"""A real JupyterLab and a real Chromium for the browser tests."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
RESULTS = Path(os.environ.get("CARTOOLKIT_TEST_RESULTS", ROOT / "test-results"))
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
}


def find_chromium():
    return next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))),
        None,
    )


def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.browser)
        item.add_marker(pytest.mark.model)


@pytest.fixture(scope="session")
def chromium_path():
    path = find_chromium()
    if path is None:
        message = "no Chromium found; install it (Debian: apt-get install chromium)"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return path


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    """A JupyterLab server on a free port; its folder and its address."""
    folder = tmp_path_factory.mktemp("lab")
    overrides = folder / "settings"
    overrides.mkdir()
    (overrides / "overrides.json").write_text(json.dumps(LAB_SETTINGS))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = (folder / "lab.log").open("w")
    process = subprocess.Popen(
        [
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
        ],
        stdout=log,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env={
            **os.environ,
            "JUPYTER_PREFER_ENV_PATH": "1",
            "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
            "JUPYTERLAB_SETTINGS_DIR": str(folder / "user-settings"),
            "JUPYTER_DATA_DIR": str(folder / "data"),
        },
    )
    address = f"http://127.0.0.1:{port}"
    _wait_for(address, process, folder / "lab.log")
    yield folder, address
    process.terminate()
    process.wait(20)
    log.close()


def _wait_for(address, process, log):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(f"{address}/api/status", timeout=1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    pytest.fail(f"JupyterLab did not start:\n{log.read_text()[-2000:]}")


@pytest.fixture(scope="session")
def browser(chromium_path):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


class Notebook:
    """One notebook open in Lab, as a person would use it.

    Attributes:
        page: Playwright's page.
        requests: every address the page asked for.
    """

    def __init__(self, page, folder, address, name):
        self.page, self.folder, self.address, self.name = page, folder, address, name
        self.requests = []
        page.on("request", lambda request: self.requests.append(request.url))

    def open(self, *, idle=True):
        self.page.goto(f"{self.address}/doc/tree/{self.name}?reset")
        if idle:
            self.page.get_by_text(re.compile(r"\| Idle")).first.wait_for(timeout=60_000)
        self.page.wait_for_timeout(1000)
        return self

    def run_all(self):
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        return self

    def save(self):
        self.page.keyboard.press("Control+s")
        self.page.wait_for_timeout(1500)

    def cell_outputs(self):
        saved = nbformat.read(self.folder / self.name, as_version=4)
        return [output for cell in saved.cells for output in cell.get("outputs", [])]


@pytest.fixture
def notebook(lab, browser, request):
    """Make a notebook from code cells and open it; a screenshot is kept if the test fails."""
    folder, address = lab
    contexts = []

    def make(*cells, name=None, width=1280, height=1100, dark=False, idle=True):
        name = name or f"{request.node.name[:60]}-{len(contexts)}.ipynb".replace("/", "-").replace(
            "[", "-"
        ).replace("]", "")
        if cells:
            book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
            book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
            nbformat.write(book, folder / name)
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
        )
        contexts.append(context)
        return Notebook(context.new_page(), folder, address, name).open(idle=idle)

    yield make
    failed = getattr(request.node, "failed", False)
    for number, context in enumerate(contexts):
        if failed:
            RESULTS.mkdir(parents=True, exist_ok=True)
            for page in context.pages:
                page.screenshot(path=RESULTS / f"{request.node.name[:80]}-{number}.png")
        context.close()
    _end_kernels(address)


def _end_kernels(address):
    with urllib.request.urlopen(f"{address}/api/sessions") as answer:
        sessions = json.load(answer)
    for session in sessions:
        urllib.request.urlopen(
            urllib.request.Request(f"{address}/api/sessions/{session['id']}", method="DELETE")
        ).close()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    if call.when == "call":
        item.failed = outcome.get_result().failed
