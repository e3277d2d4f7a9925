"""Runs the notebooks and writes their outputs as they are committed: executed, small, and still.

    python scripts/execute_notebooks.py [notebooks/01_first_look.ipynb ...]

A committed notebook holds no widget state. Of a widget's output only the static twin is kept, since a live
view without its kernel shows an error where Lab trusts the notebook. Times and counts that change with
every run are taken out of the metadata.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
LIVE_VIEW = "application/vnd.jupyter.widget-view+json"


def execute(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=600, kernel_name="python3", store_widget_state=False, record_timing=False,
        resources={"metadata": {"path": str(path.parent)}},
    )  # fmt: skip
    client.execute()
    make_still(notebook)
    nbformat.write(notebook, path)
    print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB")


def make_still(notebook: nbformat.NotebookNode) -> None:
    notebook.metadata.pop("widgets", None)
    notebook.metadata.language_info = {"name": "python"}
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            still = [output for output in cell.outputs if LIVE_VIEW not in output.get("data", {})]
            cell.outputs = _joined(still)


def _joined(outputs: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """Pieces of one printed text as one output; where they were cut depends on the machine's speed."""
    joined: list[nbformat.NotebookNode] = []
    for output in outputs:
        last = joined[-1] if joined else {}
        if output.output_type == "stream" and last.get("name") == output.name:
            last["text"] += output.text
        else:
            joined.append(output)
    return joined


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(NOTEBOOKS.glob("*.ipynb")):
        execute(Path(name))
