"""Writes the README's pictures: the Inspector, the FlareView or the RouterTable, in a real JupyterLab.

    python scripts/screenshot.py [--dark] [--view flare|router] [FILE]

The settings are fixed, so that a new picture of an answer differs from the last one only where it does. That
of the RouterTable shows what is measured while it is taken, which takes a minute or two.
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
FLARE_CELLS = [
    """import cartoolkit as ct
from cartoolkit.retrieval import demo_retriever
engine = ct.load(quiet=True)
retriever = demo_retriever()""",
    "view = ct.FlareView(engine, retriever, 'What is the capital of Guinea?')\nview",
]
ROUTER_CELLS = [
    """import os
import cartoolkit as ct
from cartoolkit.routing import Deterministic
os.environ.pop("OPENAI_API_KEY", None)
measured = ["gguf/smollm2-135m-instruct:Q4_1", "torch/smollm2-135m-instruct", "gguf/gemma3-270m:Q4_K_M"]
router = ct.Router(folder="outcomes", strategy=Deterministic())
for row in router.models:
    if row.id not in measured:
        router.registry.remove(row.id)
with open("mine.toml", "w") as file:
    file.write('''[[models]]
id = "openai/gpt-4o-mini"
capabilities = ["generate", "code", "reasoning"]
context_length = 128000
source = { kind = "remote_api", location = "https://api.openai.com/v1", key_variable = "OPENAI_API_KEY" }
cost = { input_per_mtok = 0.15, output_per_mtok = 0.60 }''')
router.add("mine.toml")""",
    "router.probe(*measured, prompt_lengths=(32, 128), repeats=3, loads=1, items=40);",
    """table = ct.RouterTable(
    router, "Why is the sky blue? Answer in two sentences.", temperature=0, seed=0, max_tokens=64,
)
table""",
]
# As high as the whole widget: what is below the window is not on the picture.
WINDOW = {"width": 1280, "height": 1400}
HIGH_WINDOW = {"width": 1280, "height": 2000}
# Probing loads every model several times, and lets it answer forty questions.
PATIENCE = 400_000
SCALE = 1.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", type=Path, help="docs/VIEW.png by default")
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


def show_flare(book: Notebook) -> Locator:
    """Run the notebook, and let the question be answered with look-ups; the output with the widget."""
    book.run_all()
    book.button("Answer").wait_for(timeout=120_000)
    book.button("Answer").click()
    book.until(lambda: book.python("view.session is not None and view.session.done"))
    book.wait_for_phase("finished")
    book.button("Answer").wait_for()
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
    "flare": (FLARE_CELLS, show_flare, HIGH_WINDOW),
    "router": (ROUTER_CELLS, show_router, HIGH_WINDOW),
}


if __name__ == "__main__":
    main()
