"""A real JupyterLab and a real Chromium for the browser tests."""

import ast
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
from jupyter_client import BlockingKernelClient

ROOT = Path(__file__).parents[2]
RESULTS = Path(os.environ.get("CARTOOLKIT_TEST_RESULTS", ROOT / "test-results"))
LOOK = Path(__file__).with_name("look.js")
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
    # The theme follows the browser's, so that a test can ask for a dark one.
    "@jupyterlab/apputils-extension:themes": {"adaptive-theme": True},
}

# The scripted decoder is at home with the engine's tests; the kernels get the same paths.
HELPERS = [str(ROOT / "tests/browser"), str(ROOT / "tests/unit/engine")]
sys.path.append(HELPERS[1])


def find_chromium():
    return next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))),
        None,
    )


def pytest_collection_modifyitems(items):
    # The hook is given the tests of all folders.
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if "default_model_notebook" in item.fixturenames:
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
            "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
            "PYTHONPATH": os.pathsep.join(HELPERS),
            # Two kernels whose threads wait for one another on a busy machine are many times slower.
            "OMP_NUM_THREADS": "1",
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
        complaints: errors and warnings on the page's console.
    """

    def __init__(self, context, folder, address, name):
        self.page, self.folder, self.address, self.name = context.new_page(), folder, address, name
        self.requests, self.complaints = [], []
        self.closed = False
        self._client = None
        self.page.add_init_script(path=LOOK)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", self._listen)

    def _listen(self, message):
        if message.type == "error" or "cartoolkit" in message.text:
            self.complaints.append(message.text)

    def open(self, *, idle=True):
        """Go to the notebook; `idle` waits for its kernel, otherwise only for its cells."""
        self.page.goto(f"{self.address}/doc/tree/{self.name}?reset")
        if idle:
            self.wait_until_idle()
        else:
            self.page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=60_000)
        # A click right after the idle mark can be lost.
        self.page.wait_for_timeout(1000)
        return self

    def wait_until_idle(self):
        self.page.get_by_text(re.compile(r"\| Idle")).first.wait_for(timeout=60_000)

    # Lab

    def menu(self, name, command):
        self.page.get_by_role("menuitem", name=name, exact=True).click()
        self.page.locator(f'.lm-Menu li[data-command="{command}"]').click()

    def run_all(self):
        self.menu("Run", "runmenu:run-all")
        return self

    def run_cell(self, number):
        self.page.locator(".jp-Notebook .jp-Cell").nth(number).locator(".jp-InputArea-editor").click()
        self.page.keyboard.press("Control+Enter")

    def save(self):
        """Save from the menu and return the file's content."""
        saved = self.folder / self.name
        before = saved.stat().st_mtime_ns
        self.menu("File", "docmanager:save")
        deadline = time.monotonic() + 20
        while saved.stat().st_mtime_ns == before:
            assert time.monotonic() < deadline, "the notebook was not saved"
            self.page.wait_for_timeout(50)
        self.page.wait_for_timeout(300)
        return nbformat.read(saved, as_version=4)

    def output(self, number):
        """Everything that a cell has shown."""
        return self.page.locator(".jp-Notebook .jp-Cell").nth(number).locator(".jp-OutputArea").first

    # The widget

    def button(self, name, nth=0):
        # The icon counts as a letter of the name.
        return self.page.get_by_role("button", name=re.compile(rf"\b{name}$")).nth(nth)

    def buttons(self):
        """What the visible buttons say."""
        return [name for name in ("Generate", "Pause", "Resume", "Step", "Stop") if self.button(name).count()]

    def view(self, nth=0):
        return self.page.get_by_test_id("run-view").nth(nth)

    def tokens(self, nth=0):
        return self.view(nth).get_by_test_id("token")

    def status(self, nth=0):
        return self.view(nth).get_by_test_id("status")

    def wait_for_phase(self, phase, nth=0, timeout=60_000):
        self.view(nth).locator(f'[data-testid="status"][data-phase="{phase}"]').wait_for(timeout=timeout)

    def wait_for_tokens(self, count, nth=0, timeout=60_000):
        self.tokens(nth).nth(count - 1).wait_for(timeout=timeout)

    def begin(self, tokens, nth=0):
        """Press Generate and wait for the first tokens of a run that takes its time."""
        self.press_generate(nth)
        self.until(
            lambda: self.status(nth).get_attribute("data-phase") in ("prefilling", "running", "paused")
        )
        self.wait_for_tokens(tokens, nth)
        self.button("Stop", nth).wait_for()

    def generate(self, nth=0):
        """Press Generate and wait until the whole run is on the page."""
        self.press_generate(nth)
        self.until(lambda: self.python("inspector.session.done"))
        count = self.python("len(inspector.session.steps)")
        self.until(lambda: self.tokens(nth).count() == count)
        self.until(lambda: self.status(nth).get_attribute("data-phase") in ("finished", "failed"))
        self.button("Generate", nth).wait_for()

    def press_generate(self, nth=0):
        before = self.python("id(inspector.session)")
        self.button("Generate", nth).click()
        self.until(lambda: self.python("id(inspector.session)") != before)

    def until(self, condition, seconds=60):
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "it did not happen in time"
            self.page.wait_for_timeout(20)

    # The kernel, asked past the browser

    def python(self, expression):
        """The value of an expression in the notebook's kernel; a literal or something json can hold."""
        reply = self._execute("import json", {"value": f"json.dumps({expression})"})
        value = reply["user_expressions"]["value"]
        assert value["status"] == "ok", f"{value['ename']}: {value['evalue']}"
        return json.loads(ast.literal_eval(value["data"]["text/plain"]))

    def do(self, code):
        """Run code in the notebook's kernel."""
        self._execute(code, {})

    def _execute(self, code, expressions):
        if self._client is None:
            self._client = BlockingKernelClient(connection_file=str(self._connection_file()))
            self._client.load_connection_file()
            self._client.start_channels(iopub=False, stdin=False, hb=False)
        sent = self._client.execute(code, silent=True, store_history=False, user_expressions=expressions)
        while True:
            reply = self._client.get_shell_msg(timeout=60)
            if reply["parent_header"].get("msg_id") == sent:
                assert reply["content"]["status"] == "ok", reply["content"]
                return reply["content"]

    def forget_kernel(self):
        """Connect anew at the next question, after a restart."""
        self._client.stop_channels()
        self._client = None

    def _connection_file(self):
        (kernel,) = [
            session["kernel"]["id"] for session in _sessions(self.address) if session["path"] == self.name
        ]
        return self.folder / "runtime" / f"kernel-{kernel}.json"

    def close(self):
        """Close the page and end the kernel."""
        if self.closed:
            return
        self.closed = True
        if self._client is not None:
            self._client.stop_channels()
        self.page.context.close()
        for session in _sessions(self.address):
            if session["path"] == self.name:
                address = f"{self.address}/api/sessions/{session['id']}"
                urllib.request.urlopen(urllib.request.Request(address, method="DELETE")).close()


def _sessions(address):
    with urllib.request.urlopen(f"{address}/api/sessions") as answer:
        return json.load(answer)


@pytest.fixture(scope="session")
def open_notebooks():
    """Every notebook that was opened; those still open are photographed when a test fails."""
    return []


@pytest.fixture(scope="session")
def open_notebook(lab, browser, open_notebooks):
    """Make a notebook from code cells, or take one that is there, and open it."""
    folder, address = lab

    def make(name, cells=(), *, width=1280, height=1100, dark=False, idle=True):
        if cells:
            book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
            book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
            nbformat.write(book, folder / name)
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
        )
        opened = Notebook(context, folder, address, name)
        open_notebooks.append(opened)
        return opened.open(idle=idle)

    yield make
    for opened in open_notebooks:
        opened.close()


@pytest.fixture
def notebook(open_notebook, open_notebooks, request):
    """As `open_notebook`, closed with its kernel when the test ends."""
    opened = []
    safe = re.sub(r"[^\w-]+", "-", request.node.name)[:60]

    def make(*cells, name=None, **options):
        opened.append(open_notebook(name or f"{safe}-{len(opened)}.ipynb", cells, **options))
        return opened[-1]

    yield make
    _photograph_failure(request.node, open_notebooks)
    for book in opened:
        book.close()


def _photograph_failure(node, open_notebooks):
    if not getattr(node, "failed", False):
        return
    RESULTS.mkdir(parents=True, exist_ok=True)
    for number, book in enumerate(book for book in open_notebooks if not book.closed):
        name = re.sub(r"[^\w-]+", "-", node.name)[:80]
        book.page.screenshot(path=RESULTS / f"{name}-{number}.png")


@pytest.fixture(scope="session")
def default_model_notebook(open_notebook):
    """The default model and an Inspector, by Run All; shared, since loading takes longer than most tests."""
    book = open_notebook(
        "default_model.ipynb",
        [
            "import cartoolkit as ct\nengine = ct.load()",
            "inspector = ct.Inspector(engine, 'Why is the sky blue?', seed=1, max_tokens=24)\ninspector",
            "'the cell below'",
        ],
    )
    book.run_all()
    book.button("Generate").wait_for(timeout=90_000)
    return book


@pytest.fixture
def sky(default_model_notebook, open_notebooks, request):
    """The default model's Inspector, as it was at first, with nothing running."""
    book = default_model_notebook
    book.do(
        "if inspector.session is not None:\n    inspector.session.stop(); inspector.session.wait(30)\n"
        "inspector.prompt.value = 'Why is the sky blue?'\n"
        "inspector.controls.seed.value, inspector.controls.max_tokens.value = 1, 24\n"
        "inspector.view.threshold, inspector.view.selected, inspector.view.metric = 0.4, None, 'max_prob'\n"
    )
    book.button("Generate").wait_for()
    yield book
    _photograph_failure(request.node, open_notebooks)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    if call.when == "call":
        item.failed = outcome.get_result().failed
