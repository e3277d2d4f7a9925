"""The FlareView in a real JupyterLab: what is dropped, looked up, dragged and compared; needs no model."""

import pytest

READY = "import cartoolkit as ct, flare_stage\nengine = flare_stage.play()\nlibrary = flare_stage.Library()"
SHOW = "view = ct.FlareView(engine, library, flare_stage.QUESTION)\nview"
ANSWER = "It is Canberra. Its lake is large."
NAMES = ["Compare policies", "Stop comparing", "Answer", "Pause", "Resume", "Step", "Stop"]


def shown_buttons(book):
    return [name for name in NAMES if book.button(name).count()]


def answered(book):
    """Press Answer and wait until the whole run is on the page."""
    before = book.python("id(view.session)")
    book.button("Answer").click()
    book.until(lambda: book.python("id(view.session)") != before and book.python("view.session.done"))
    book.until(lambda: book.tokens().count() == book.python("len(view.trace)"))
    book.wait_for_phase("finished")
    book.button("Answer").wait_for()


def answer_on_page(book):
    """The text of the answer as it stands, without what was dropped."""
    return " ".join(book.view().locator(".token:not(.dropped):not(.special)").all_inner_texts())


def label(book, text):
    """Where a label of the plot is."""
    return book.view().locator("svg text").get_by_text(text, exact=True).first.bounding_box()


@pytest.fixture(scope="module")
def shared(open_notebook):
    """One FlareView for all tests that leave it as it was."""
    book = open_notebook("flare.ipynb", [READY, SHOW], height=1500)
    book.run_all()
    book.button("Answer").wait_for()
    return book


@pytest.fixture
def book(shared):
    """The FlareView after an answer with the settings it had at first."""
    shared.do("view.policy = ct.retrieval.preset('rollback')\nview.view.selected = None")
    answered(shared)
    return shared


def test_before_the_first_question_there_is_one_thing_to_do(notebook):
    book = notebook(READY, "view = ct.FlareView(engine, library)\nview", "'the cell below'")
    book.run_all()
    book.button("Answer").wait_for()
    assert shown_buttons(book) == ["Compare policies", "Answer"]
    book.view().get_by_text("Write a question and press Answer").wait_for()
    book.button("Answer").click()
    book.page.get_by_text("There is no question yet").wait_for()
    assert book.complaints == []


def test_what_was_dropped_and_looked_up_is_on_the_page(book):
    assert answer_on_page(book).replace(" .", ".") == ANSWER
    assert book.view().locator(".token.dropped").all_inner_texts() == ["Sydney"]
    assert book.view().get_by_test_id("look-up-mark").count() == 2
    first = book.view().get_by_test_id("look-up").first.inner_text()
    for part in ("It is", "capitals.md:3", "<script>window.__pwned=1</script>", "0.400", "0.280", "0.850"):
        assert part in first
    assert book.view().locator(".token.retrieved").all_inner_texts() == ["Canberra", "lake"]
    assert "1 of 3" in book.view().get_by_test_id("budget").inner_text()
    assert book.page.evaluate("window.__pwned") is None
    assert book.complaints == []


def test_a_drag_of_the_line_is_answered_and_moves_the_slider(book):
    line = book.view().get_by_test_id("threshold").locator("rect.grip")
    box = line.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    book.page.mouse.move(x, y)
    book.page.mouse.down()
    book.page.mouse.move(x, y + 20, steps=5)
    # As far as from 0.6 to 0.38, on a plot whose 0.25 are as high as between two of its labels.
    high = abs(label(book, "0.75")["y"] - label(book, "0.5")["y"])
    book.page.mouse.move(x, y + 0.88 * high, steps=5)
    book.page.mouse.up()
    book.until(lambda: 0.35 < book.python("view.policy.trigger.threshold") < 0.4)
    value = book.python("view.policy.trigger.threshold")
    assert book.python("view.controls.threshold.value") == book.python("view.view.threshold") == value
    # Below 0.4 and above 0.35 it is the last word alone that is in doubt.
    book.until(lambda: "would have looked up once" in book.view().get_by_test_id("what-if").inner_text())
    answered(book)
    assert answer_on_page(book).startswith("It is Sydney")
    assert book.python("view.trace.header.retrieval['policy']['trigger']['threshold']") == value


def test_policies_are_compared_and_a_row_shows_its_run(book):
    book.button("Compare policies").click()
    rows = book.view().get_by_test_id("beside-row")
    book.until(lambda: rows.count() == 5 and book.python("view.comparison.done"))
    texts = lambda: [" ".join(row.split()) for row in rows.all_inner_texts()]  # noqa: E731
    book.until(lambda: all("lake is large" in text for text in texts()))
    assert [text.split()[0] for text in texts()] == ["none", "upfront", "seed", "flare", "rollback"]
    assert ["Canberra" in text for text in texts()] == [False, True, False, True, True]
    rows.first.get_by_role("button", name="none").click()
    book.until(lambda: "Sydney" in answer_on_page(book))
    assert book.python("view.trace.header.retrieval['policy']['name']") == "none"
    book.until(lambda: rows.first.get_attribute("aria-current") == "true")
    rows.last.get_by_role("button", name="rollback").click()
    book.until(lambda: "Canberra" in answer_on_page(book))
    assert book.complaints == []


def test_controls_appear_as_the_policy_has_settings(book):
    controls = book.page.locator(".cartoolkit-controls")

    def shown():
        names = ("threshold", "look-ups", "passages")
        return [name for name in names if controls.get_by_text(name, exact=True).filter(visible=True).count()]

    menu = book.page.get_by_role("combobox", name="policy")
    every = ["threshold", "look-ups", "passages"]
    for policy, expected in (("none", []), ("upfront", ["passages"]), ("flare", every), ("rollback", every)):
        menu.select_option(policy)
        book.until(lambda policy=policy: book.python("view.policy.name") == policy)
        book.until(lambda expected=expected: shown() == expected)


def test_a_slow_look_up_is_told_and_can_be_stopped(notebook):
    slow = READY.replace("Library()", "Library(60)")
    book = notebook(slow, SHOW)
    book.run_all()
    book.button("Answer").click()
    book.wait_for_phase("looking_up")
    assert book.tokens().all_inner_texts() == ["It", "is", "Sydney"]
    assert shown_buttons(book) == ["Pause", "Step", "Stop"]
    book.button("Stop").click()
    book.wait_for_phase("finished")
    assert book.python("view.result.stop_reason") == "stopped"
    book.button("Answer").wait_for()


def test_a_saved_notebook_holds_the_look_ups_and_the_comparison(notebook, browser, tmp_path):
    book = notebook(READY, SHOW)
    book.run_all()
    book.button("Answer").wait_for()
    answered(book)
    book.button("Compare policies").click()
    twin = book.page.locator("[class^=cartoolkit-twin]")
    book.until(lambda: "The same question under other policies" in twin.text_content())
    saved = book.save()
    still = saved.cells[1].outputs[1].data
    assert "▲1 before token 3" in still["text/plain"]
    page = tmp_path / "still.html"
    page.write_text("<!doctype html><meta charset=utf-8>" + still["text/html"])
    tab = browser.new_page(viewport={"width": 1000, "height": 1200})
    tab.goto(page.as_uri())
    assert tab.locator("del").all_inner_texts() == ["rolled back", " Sydney"]
    assert tab.locator("sup").all_inner_texts() == ["▲1", "▲2"]
    assert "asked: What is the capital of Australia? It is" in tab.locator("body").inner_text()
    assert "It is Sydney. Its lake is large." in tab.locator("table").last.inner_text()
    assert tab.evaluate("window.__pwned") is None
    tab.close()
