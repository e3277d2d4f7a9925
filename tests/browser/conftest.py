"""A real JupyterLab and a real Chromium for the browser tests."""

import os
import re
import sys
from pathlib import Path

import pytest
from lab_notebook import Notebook, write_notebook
from lab_server import chromium, find_chromium, jupyterlab

ROOT = Path(__file__).parents[2]
RESULTS = Path(os.environ.get("CARTOOLKIT_TEST_RESULTS", ROOT / "test-results"))

# The scripted decoder is at home with the engine's tests; the kernels get the same paths.
HELPERS = [str(ROOT / "tests/browser"), str(ROOT / "tests/unit/engine")]
sys.path.append(HELPERS[1])


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
    with jupyterlab(folder, python_path=HELPERS) as address:
        yield folder, address


@pytest.fixture(scope="session")
def browser(chromium_path):
    with chromium(chromium_path) as browser:
        yield browser


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
            write_notebook(folder / name, cells)
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


@pytest.fixture
def slow_sky(sky):
    """As `sky`, with a model slow enough that a run can be caught in its middle."""
    sky.slow_down()
    yield sky
    sky.full_speed()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    if call.when == "call":
        item.failed = outcome.get_result().failed
