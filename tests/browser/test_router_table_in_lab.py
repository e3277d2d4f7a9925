"""The RouterTable in a real JupyterLab: scores, sliders, cells, answers and thumbs; needs no model."""

import re

import nbformat
import pytest

READY = "import cartoolkit as ct, router_stage\nrouter = router_stage.play()"
SHOW = "table = ct.RouterTable(router, 'Say something.', temperature=0, max_tokens=128)\ntable"
QUICK, STEADY = "script/quick", "script/steady"


def view(book):
    return book.page.get_by_test_id("router-view")


def cell(book, model, workload):
    """A cell by the name of its model and the place of its workload."""
    row = view(book).get_by_test_id("router-row").filter(has_text=model)
    return row.get_by_test_id("router-cell").nth(workload)


def score(book, model, workload=0):
    return float(cell(book, model, workload).locator(".cell-head b").inner_text())


def knob(book, name, kind="range"):
    return view(book).get_by_test_id(name).locator(f"input[type={kind}]")


def interactive(book, name):
    """A weight of the first workload, as the kernel has it."""
    return book.python(f"table.settings.profiles[0].{name}")


def detail(book):
    return view(book).get_by_test_id("router-detail")


def opened(book):
    """Run the notebook and wait until the table is there, and its kernel has spoken."""
    book.run_all()
    view(book).get_by_test_id("router-cell").first.wait_for(timeout=90_000)
    book.until(lambda: knob(book, "weight-quality").is_enabled())
    return book


@pytest.fixture(scope="module")
def shared(open_notebook):
    """One RouterTable for all tests that leave it as it was."""
    return opened(open_notebook("router.ipynb", [READY, SHOW], height=1700))


@pytest.fixture
def book(shared):
    """The RouterTable with the weights and limits it had at first, and its first cell selected."""
    limit, reset = knob(shared, "question-max_latency_ms", "number"), view(shared).get_by_test_id("reset")
    if limit.input_value():
        limit.fill("")
        limit.press("Enter")
    # Asked of the kernel: the page may not have heard of the last change yet.
    if shared.python("table.settings.profiles != table.settings.first"):
        reset.click()
    shared.until(reset.is_disabled)
    cell(shared, "quick", 0).click()
    shared.until(lambda: shared.python("list(table.settings.selected)") == ["interactive", QUICK])
    shared.until(lambda: detail(shared).locator("h3").first.inner_text().startswith("Interactive"))
    return shared


def test_the_table_shows_scores_ranks_and_why_a_model_is_left_out(book):
    assert view(book).get_by_test_id("router-workload").count() == 5
    assert view(book).get_by_test_id("router-row").count() == 3
    for model in (QUICK, STEADY):
        shown = book.python(
            f"{{c.model.id: c.score.total for c in table.decision.candidates if c.score}}[{model!r}]"
        )
        assert score(book, model.split("/")[1]) == pytest.approx(shown, abs=5e-4)
    left_out = cell(book, "large", 0).inner_text()
    assert "left out" in left_out
    assert "no key set: ACME_KEY_THAT_NOBODY_HAS" in left_out
    assert cell(book, "quick", 0).locator(".rank").inner_text() == "#1"
    assert book.complaints == []


def test_a_slider_scores_anew_while_it_is_dragged_and_reset_takes_it_back(book):
    before = score(book, "steady")
    slider = knob(book, "weight-latency")
    box = slider.bounding_box()
    y = box["y"] + box["height"] / 2
    book.page.mouse.move(box["x"] + 0.4 * box["width"], y)
    book.page.mouse.down()
    book.page.mouse.move(box["x"] + 0.1 * box["width"], y, steps=12)
    # In the middle of the drag the kernel has answered already.
    book.until(lambda: score(book, "steady") != before)
    book.page.mouse.move(box["x"] - 20, y, steps=4)
    book.page.mouse.up()
    book.until(lambda: interactive(book, "latency") == 0)
    # The other two keep their ratio of 0.45 to 0.15.
    assert interactive(book, "quality") == pytest.approx(0.75)
    assert interactive(book, "cost") == pytest.approx(0.25)
    book.until(lambda: knob(book, "weight-quality", "number").input_value() == "0.75")
    book.until(lambda: cell(book, "steady", 0).locator(".rank").inner_text() == "#1")
    view(book).get_by_test_id("reset").click()
    book.until(lambda: interactive(book, "latency") == 0.4)
    book.until(lambda: score(book, "steady") == before)
    assert knob(book, "weight-latency", "number").input_value() == "0.40"


def test_a_limit_that_is_written_leaves_a_model_out_and_an_empty_field_takes_it_away(book):
    field = knob(book, "question-max_latency_ms", "number")
    field.fill("1000")
    field.press("Enter")
    book.until(lambda: "at most 1,000 ms" in cell(book, "steady", 0).inner_text())
    assert cell(book, "quick", 0).locator(".rank").inner_text() == "#1"
    field.fill("")
    field.press("Enter")
    book.until(lambda: cell(book, "steady", 0).locator(".rank").count() == 1)
    assert book.python("table.settings.demand.max_latency_ms") is None


def test_a_click_opens_the_arithmetic_of_a_cell_and_takes_its_workload(book):
    cell(book, "steady", 4).click()
    book.until(lambda: "Fastest" in detail(book).locator("h3").first.inner_text())
    lines = detail(book).get_by_test_id("detail-line").all_inner_texts()
    assert [line.split()[0] for line in lines] == ["quality", "latency", "cost", "local"]
    # 900 ms to the first token, of which 500 are worth one half; weight 0.85.
    assert "0.85 × 0.35" in lines[1]
    assert book.python("table.workload.value") == "fastest"
    assert knob(book, "weight-latency", "number").input_value() == "0.85"
    book.until(lambda: view(book).get_by_test_id("changes").locator("li").count() > 0)
    assert cell(book, "steady", 4).get_attribute("aria-selected") == "true"


def test_the_keyboard_goes_through_the_table_and_selects(book):
    cell(book, "quick", 0).focus()
    book.page.keyboard.press("ArrowRight")
    book.page.keyboard.press("ArrowDown")
    focused = "root => root.getRootNode().activeElement?.getAttribute('aria-label') ?? ''"
    assert re.match(r"steady.*, Batch: rank", view(book).evaluate(focused))
    book.page.keyboard.press("Enter")
    book.until(lambda: "Batch" in detail(book).locator("h3").first.inner_text())
    assert book.python("list(table.settings.selected)") == ["batch", STEADY]
    slider = knob(book, "weight-local_bonus")
    slider.focus()
    book.page.keyboard.press("ArrowRight")
    book.until(lambda: book.python("table.settings.profiles[1].local_bonus") == 0.09)


def test_an_answer_comes_with_thumbs_that_reach_the_router(book):
    book.button("Route").click()
    answer = view(book).get_by_test_id("router-answer")
    up = answer.get_by_test_id("thumb-good")
    up.wait_for()
    assert "<script>window.__pwned=1</script>" in answer.inner_text()
    book.button("Route").wait_for()
    calls = f"table.router.history.tracker.profile({QUICK!r}).total"
    before = book.python(f"{calls}.fail_count")
    answer.get_by_test_id("thumb-bad").click()
    book.until(lambda: book.python(f"{calls}.fail_count") == before + 1)
    book.until(lambda: up.is_disabled())
    assert answer.get_by_test_id("thumb-bad").get_attribute("aria-pressed") == "true"
    assert book.page.evaluate("window.__pwned") is None
    assert book.complaints == []


def test_the_page_asks_nobody_else(book):
    hosts = {re.match(r"(blob|data):|https?://([^/:]+)", url).group(0) for url in book.requests}
    assert {host for host in hosts if host.startswith("http")} == {"http://127.0.0.1"}


def test_in_a_narrow_window_the_table_scrolls_inside_and_the_models_stay(notebook):
    book = opened(notebook(READY, SHOW, width=760))
    scroller = view(book).get_by_test_id("router-grid")
    assert scroller.evaluate("node => node.scrollWidth > node.clientWidth + 50")
    head = view(book).get_by_test_id("router-model").first
    left = head.bounding_box()["x"]
    scroller.evaluate("node => { node.scrollLeft = 200 }")
    assert head.bounding_box()["x"] == pytest.approx(left, abs=1)
    outside = view(book).evaluate(
        "node => node.getBoundingClientRect().right - node.parentElement.getBoundingClientRect().right"
    )
    assert outside <= 0.5
    assert book.page.locator(".jp-Notebook").evaluate("node => node.scrollWidth - node.clientWidth") <= 1


def test_a_saved_notebook_from_elsewhere_shows_the_still_table(notebook, lab):
    book = opened(notebook(READY, SHOW))
    book.until(lambda: book.page.locator("[class^=cartoolkit-twin]").count() > 0)
    content = book.save()
    book.close()
    copy = nbformat.from_dict(content)
    copy.metadata["seen_before"] = False
    nbformat.write(copy, lab[0] / "router-elsewhere.ipynb")
    again = notebook(name="router-elsewhere.ipynb", idle=False)
    again.output(1).get_by_text("quick").first.wait_for()
    again.page.wait_for_timeout(1500)
    text = again.output(1).inner_text()
    assert "no key set: ACME_KEY_THAT_NOBODY_HAS" in text
    assert "Interactive" in text
    assert again.page.get_by_test_id("router-view").count() == 0
    assert again.page.evaluate("window.__pwned") is None
