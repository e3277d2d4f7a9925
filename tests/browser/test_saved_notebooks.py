"""What a saved notebook shows where no kernel answers, and that no token ever becomes markup."""

import re

import nbformat
import pytest
from lab_notebook import LOOK
from nbconvert import HTMLExporter
from stage import HOSTILE

INSPECTOR = "inspector = ct.Inspector(engine, 'Count to ten.', temperature=0)\ninspector"
COUNT = ["import cartoolkit as ct, stage\nengine = stage.play()", INSPECTOR, "'the cell below'"]
TEN = "one two three four five six seven eight nine ten"
TWIN = "[class^=cartoolkit-twin]"
STATE = "application/vnd.jupyter.widget-state+json"


@pytest.fixture(scope="module")
def saved(open_notebook):
    """A notebook that was run, generated with, saved from the menu, and closed with its kernel."""
    book = open_notebook("count.ipynb", COUNT)
    book.run_all()
    book.button("Generate").wait_for()
    book.generate()
    book.until(lambda: book.page.locator(TWIN).text_content().count("ten") > 0)
    content = book.save()
    book.close()
    return content


def change(notebook, folder, name):
    """A copy that Jupyter has not seen being run, so that it does not trust it."""
    copy = nbformat.from_dict(notebook)
    copy.metadata["seen_before"] = False
    nbformat.write(copy, folder / name)
    return name


def text_of(twin):
    return re.sub(r"\s+", " ", twin.inner_text())


def test_saving_keeps_the_last_run_and_no_widget_state(saved):
    assert STATE not in saved.metadata.get("widgets", {})
    live, twin = saved.cells[1].outputs
    assert "application/vnd.jupyter.widget-view+json" in live.data
    assert TEN in twin.data["text/plain"]


def test_a_notebook_from_elsewhere_shows_the_static_twin(saved, lab, notebook):
    name = change(saved, lab[0], "elsewhere.ipynb")
    book = notebook(name=name, idle=False)
    twin = book.output(1)
    twin.get_by_text("least sure tokens").wait_for()
    book.page.wait_for_timeout(2000)
    assert TEN in text_of(twin)
    assert "rror" not in text_of(book.page.locator(".jp-Notebook"))
    assert "Trusted" not in book.page.locator("#jp-main-statusbar").inner_text()
    assert book.page.get_by_test_id("run-view").count() == 0
    first, second = book.output(1).locator(".jp-OutputArea-child").all()
    assert first.bounding_box() is None or first.bounding_box()["height"] < 12
    assert second.bounding_box()["height"] > 150


def test_a_trusted_notebook_without_its_kernel_shows_the_static_twin(saved, notebook):
    """Lab writes one line of its own above it: it does not know the widget any more."""
    book = notebook(name="count.ipynb", idle=False)
    twin = book.page.locator(TWIN)
    twin.wait_for()
    book.page.get_by_text("Error displaying widget: model not found").wait_for()
    book.page.wait_for_timeout(1000)
    assert twin.is_visible()
    assert TEN in text_of(twin)


def test_a_frozen_notebook_shows_the_twin_and_no_error(notebook):
    book = notebook(*COUNT)
    book.run_all()
    book.button("Generate").wait_for()
    book.generate()
    book.do("inspector.freeze()")
    book.page.locator(TWIN).wait_for()
    assert book.page.get_by_test_id("run-view").count() == 0
    content = book.save()
    assert "widget-view" not in nbformat.writes(content)
    again = notebook(name=book.name, idle=False)
    again.page.locator(TWIN).wait_for()
    again.page.wait_for_timeout(2000)
    assert TEN in text_of(again.page.locator(TWIN))
    assert "rror" not in text_of(again.page.locator(".jp-Notebook"))


# Hostile text: as tokens, candidates, prompt and model name

HOSTILE_NAME = "<script>window.__pwned=4</script><img src=x onerror=window.__pwned=5>"
HOSTILE_CELLS = [
    f"import cartoolkit as ct, stage\nengine = stage.play(stage.HOSTILE, name={HOSTILE_NAME!r})",
    "inspector = ct.Inspector(engine, '\\n'.join(stage.HOSTILE), temperature=0)\ninspector",
]


PLAIN = ["<script>window.__pwned=1</script>", "</textarea>", "&amp;", "<img src=x onerror="]


def assert_harmless(page, root, *, boxes=0):
    """Nothing ran, and no element was made of a text; `boxes` are those that the Inspector itself has."""
    assert page.evaluate("window.__pwned") is None
    assert len(root.evaluate("root => look.suspicious(root)")) == boxes


@pytest.fixture(scope="module")
def hostile(open_notebook):
    book = open_notebook("hostile.ipynb", HOSTILE_CELLS)
    book.run_all()
    book.button("Generate").wait_for()
    book.generate()
    return book


def test_hostile_text_is_shown_as_text_in_the_live_view(hostile):
    tokens = hostile.tokens()
    assert tokens.count() == len(HOSTILE) + 1
    text = hostile.python("inspector.result.text")
    assert text == "".join(HOSTILE)
    shown = hostile.view().get_by_test_id("tokens").evaluate("tokens => look.text(tokens)")
    assert shown == text
    for index in range(len(HOSTILE)):
        tokens.nth(index).click()
        hostile.view().get_by_text(f"Token {index}", exact=True).wait_for()
        tokens.nth(index).hover()
        labels = hostile.view().get_by_test_id("candidate").locator("td.name").all_inner_texts()
        assert {"<script>window.__pwned=1</script>", "</textarea>", "&amp;"} <= set(labels)
    assert "<script>window.__pwned=1</script>" in hostile.view().locator(".asked").inner_text()
    assert HOSTILE_NAME in hostile.output(1).inner_text()
    # The prompt box is a text area.
    assert_harmless(hostile.page, hostile.output(1), boxes=1)


@pytest.fixture(scope="module")
def hostile_saved(hostile):
    content = hostile.save()
    hostile.close()
    return content


@pytest.mark.parametrize("trusted", [False, True])
def test_hostile_text_stays_text_in_the_reopened_notebook(hostile_saved, lab, notebook, trusted):
    name = "hostile.ipynb" if trusted else change(hostile_saved, lab[0], "hostile_elsewhere.ipynb")
    book = notebook(name=name, idle=False)
    output = book.output(1)
    output.get_by_text("least sure tokens").click()
    book.page.wait_for_timeout(500)
    for text in (*PLAIN, HOSTILE_NAME):
        assert text in output.inner_text()
    assert_harmless(book.page, output)


def test_hostile_text_stays_text_in_an_html_export(hostile_saved, browser, tmp_path):
    page_file = tmp_path / "export.html"
    body, _ = HTMLExporter().from_notebook_node(hostile_saved)
    page_file.write_text(body)
    context = browser.new_context(offline=True)
    try:
        page = context.new_page()
        page.add_init_script(path=LOOK)
        page.goto(page_file.as_uri(), wait_until="domcontentloaded")
        twin = page.locator(TWIN)
        twin.get_by_text("least sure tokens").click()
        for text in (*PLAIN, HOSTILE_NAME):
            assert text in twin.inner_text()
        assert_harmless(page, twin)
    finally:
        context.close()
