"""Writes the README's pictures: the Inspector, or the RouterTable, in a real JupyterLab on the default model.

    python scripts/screenshot.py [--dark] [--view router] [FILE]

The settings are fixed, so that a new picture of the Inspector differs from the last one only where it does.
That of the RouterTable shows what is measured while it is taken: every engine at hand is probed first.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Locator

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests/browser"))

from lab_notebook import Notebook, write_notebook  # noqa: E402
from lab_server import chromium, find_chromium, jupyterlab  # noqa: E402

CELLS = [
    "import cartoolkit as ct\nengine = ct.load(quiet=True)",
    """inspector = ct.Inspector(
    engine, "Why is the sky blue? Answer in two sentences.",
    temperature=0.7, top_k=40, top_p=0.8, seed=6, max_tokens=100,
)
inspector""",
]
# The least likely word that was drawn against a doubtful favourite, while half of its rivals were removed.
CHOICE = (
    "min((s for s in inspector.trace if s.max_prob < 0.4 and s.rank > 1 and s.text.strip().isalpha() "
    "and sum(bool(c.removed_by) for c in list(s.candidates)[:10]) >= 5), key=lambda s: s.prob).index"
)
ROUTER_CELLS = [
    "import cartoolkit as ct\nrouter = ct.Router(folder='outcomes')",
    "router.probe();",
    """table = ct.RouterTable(
    router, "Why is the sky blue? Answer in two sentences.", temperature=0, seed=0, max_tokens=64,
)
table""",
]
# As high as the whole widget: what is below the window is not on the picture.
WINDOW = {"width": 1280, "height": 1400}
HIGH_WINDOW = {"width": 1280, "height": 2000}
# Probing reads long prompts and answers questions on every engine.
PATIENCE = 900_000
SCALE = 1.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", type=Path, help="docs/inspector.png or docs/router.png by default")
    parser.add_argument("--view", choices=VIEWS, default="inspector")
    parser.add_argument("--dark", action="store_true", help="in Lab's dark theme")
    options = parser.parse_args()
    file = options.file or ROOT / f"docs/{options.view}.png"
    cells, photograph, window = VIEWS[options.view]
    browser_path = find_chromium()
    if browser_path is None:
        sys.exit("Chromium is missing. Debian: sudo apt-get install chromium.")
    with (
        tempfile.TemporaryDirectory() as folder,
        jupyterlab(folder) as address,
        chromium(browser_path) as browser,
    ):
        write_notebook(Path(folder) / "picture.ipynb", cells)
        context = browser.new_context(
            viewport=window, device_scale_factor=SCALE, color_scheme="dark" if options.dark else "light"
        )
        book = Notebook(context, Path(folder), address, "picture.ipynb")
        file.parent.mkdir(parents=True, exist_ok=True)
        output = photograph(book.open())
        # The pointer and the focus leave no mark.
        book.page.mouse.move(0, 0)
        book.page.wait_for_timeout(500)
        output.locator(".jp-OutputArea-output").first.screenshot(path=file)
        book.close()
    print(f"{file}: {file.stat().st_size / 1e3:.0f} kB")


def show_inspector(book: Notebook) -> Locator:
    """Run the notebook, generate, and select a token; the output with the widget."""
    book.run_all()
    book.button("Generate").wait_for(timeout=120_000)
    book.generate()
    index = book.python(CHOICE)
    book.do(f"inspector.view.selected = {index}")
    book.view().get_by_text(f"Token {index}", exact=True).wait_for()
    return book.output(1)


def show_router(book: Notebook) -> Locator:
    """Run the notebook, which probes the models, let the router answer, and open the cell of its choice."""
    book.run_all()
    table = book.page.get_by_test_id("router-view")
    table.get_by_test_id("router-cell").first.wait_for(timeout=PATIENCE)
    book.button("Route").click()
    table.get_by_test_id("thumb-good").first.wait_for(timeout=120_000)
    book.button("Route").wait_for()
    # The token views below have a picture of their own.
    book.do("table.children[-1].layout.display = 'none'")
    table.locator(".first").first.click()
    table.get_by_test_id("changes").locator("li").first.wait_for()
    return book.output(2)


VIEWS = {
    "inspector": (CELLS, show_inspector, WINDOW),
    "router": (ROUTER_CELLS, show_router, HIGH_WINDOW),
}


if __name__ == "__main__":
    main()
