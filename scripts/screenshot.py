"""Writes the README's picture: the Inspector in a real JupyterLab, on the default model.

    python scripts/screenshot.py [--dark] [FILE]

The settings are fixed, so that a new picture differs from the last one only where the Inspector does.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

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
WINDOW = {"width": 1280, "height": 1400}
SCALE = 1.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", type=Path, default=ROOT / "docs/inspector.png")
    parser.add_argument("--dark", action="store_true", help="in Lab's dark theme")
    options = parser.parse_args()
    browser_path = find_chromium()
    if browser_path is None:
        sys.exit("Chromium is missing. Debian: sudo apt-get install chromium.")
    with (
        tempfile.TemporaryDirectory() as folder,
        jupyterlab(folder) as address,
        chromium(browser_path) as browser,
    ):
        write_notebook(Path(folder) / "inspector.ipynb", CELLS)
        context = browser.new_context(
            viewport=WINDOW, device_scale_factor=SCALE, color_scheme="dark" if options.dark else "light"
        )
        book = Notebook(context, Path(folder), address, "inspector.ipynb")
        photograph(book, options.file)
    print(f"{options.file}: {options.file.stat().st_size / 1e3:.0f} kB")


def photograph(book: Notebook, file: Path) -> None:
    """Run the notebook, generate, select a token, and write the picture of the widget alone."""
    book.open().run_all()
    book.button("Generate").wait_for(timeout=120_000)
    book.generate()
    index = book.python(CHOICE)
    book.do(f"inspector.view.selected = {index}")
    book.view().get_by_text(f"Token {index}", exact=True).wait_for()
    # The pointer and the focus leave no mark.
    book.page.mouse.move(0, 0)
    book.page.wait_for_timeout(500)
    file.parent.mkdir(parents=True, exist_ok=True)
    book.output(1).locator(".jp-OutputArea-output").first.screenshot(path=file)
    book.close()


if __name__ == "__main__":
    main()
