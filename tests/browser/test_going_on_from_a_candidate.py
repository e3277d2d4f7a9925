"""Going on from a candidate, by pointer and keyboard, and back to the runs before; needs no model."""

import pytest

QUICK = "import cartoolkit as ct, stage\nengine = stage.play()"
SLOW = "import cartoolkit as ct, stage\nengine = stage.endless()"
SHOW = "inspector = ct.Inspector(engine, 'Count.', temperature=0, max_tokens=40)\ninspector"
SHOW_LONG = SHOW.replace("40", "2000")
FOCUSED = """() => {
    const { activeElement } = document.querySelector(".cartoolkit-run").shadowRoot;
    if (activeElement === null) return null;
    const { action = null, token = null } = activeElement.dataset;
    return { action, token, ring: getComputedStyle(activeElement).outlineStyle !== "none",
             panel: activeElement.dataset.testid === "candidates" };
}"""


def candidate(book, word, nth=0):
    """The button of a candidate of the token that is shown."""
    return book.view(nth).get_by_role("button", name=f"with ' {word}' instead")


def words(book, nth=0):
    return " ".join(book.tokens(nth).all_text_contents())


def spoken(book, trace="inspector.trace"):
    """The words of a run as Python knows them."""
    return book.python(f"''.join({trace}.texts).split()")


def wait_for_branch(book, runs):
    book.until(lambda: book.python("len(inspector.runs)") == runs)
    book.until(lambda: book.view().locator(".token.forced").count() == 1)


@pytest.fixture
def counted(notebook):
    """An answer of ten words, with the third taken apart."""
    book = notebook(QUICK, SHOW)
    book.run_all()
    book.button("Generate").wait_for()
    book.generate()
    book.tokens().nth(2).click()
    book.view().get_by_text("Token 2", exact=True).wait_for()
    return book


def test_a_click_on_a_candidate_goes_on_with_it(counted):
    book = counted
    table = book.view().locator("tbody")
    place = table.bounding_box()
    candidate(book, "seven").click()
    wait_for_branch(book, 2)
    book.wait_for_phase("finished")
    assert spoken(book)[:3] == ["one", "two", "seven"]
    assert words(book).split()[:3] == ["one", "two", "seven"]
    token = book.tokens().nth(2)
    assert "forced" in token.get_attribute("class")
    assert "branched" in token.get_attribute("class")
    assert token.get_attribute("aria-selected") == "true"
    panel = book.view().get_by_test_id("candidates")
    assert panel.locator("tr.chosen td").all_inner_texts()[-1] == "forced"
    assert "after 2 tokens, with ' seven' put there" in book.view().get_by_test_id("origin").inner_text()
    # What was clicked stays under the pointer, for a click on the next one.
    assert table.bounding_box() == place
    book.until(lambda: book.buttons() == ["Generate"])
    twin = book.page.locator("[class^=cartoolkit-twin]")
    book.until(lambda: "seven" in twin.text_content())
    assert book.complaints == []


def test_a_double_click_makes_one_branch(counted):
    book = counted
    candidate(book, "six").dblclick()
    wait_for_branch(book, 2)
    book.page.wait_for_timeout(1000)
    assert book.python("len(inspector.runs)") == 2
    assert book.page.get_by_role("alert").filter(visible=True).count() == 0


def test_the_runs_before_are_a_click_away(counted):
    book = counted
    arrow = lambda sign: book.page.get_by_role("button", name=sign, exact=True)  # noqa: E731
    place = lambda number: book.page.get_by_text(f"{number} / 3", exact=True)  # noqa: E731
    assert arrow("‹").count() == 0
    for number, word in ((2, "seven"), (3, "eight")):
        candidate(book, word).click()
        wait_for_branch(book, number)
        book.wait_for_phase("finished")
        # Not the second click of a double click any more.
        book.page.wait_for_timeout(700)
    place(3).wait_for()
    assert arrow("›").is_disabled()
    for number, sign, word in ((2, "‹", "seven"), (1, "‹", "three"), (2, "›", "seven"), (3, "›", "eight")):
        arrow(sign).click()
        place(number).wait_for()
        book.until(lambda word=word: words(book).split()[2:3] == [word])
        assert spoken(book) == spoken(book, f"inspector.runs[{number - 1}]") == words(book).split()


def test_a_candidate_is_taken_by_the_keyboard(counted):
    book = counted
    press, focused = book.page.keyboard.press, lambda: book.page.evaluate(FOCUSED)
    book.tokens().nth(2).focus()
    for _ in range(8):
        press("Tab")
        if (focused() or {}).get("action") == "take":
            break
    before = focused()
    assert (before["action"], before["ring"]) == ("take", True)
    press("Enter")
    wait_for_branch(book, 2)
    book.wait_for_phase("finished")
    assert book.python("inspector.trace[2].token_id") == int(before["token"])
    # What had the focus is not a button any more; Tab goes on from the panel.
    assert focused()["panel"]
    press("Tab")
    assert focused()["action"] == "follow"


@pytest.mark.parametrize("selects", [True, False])
def test_a_candidate_is_taken_while_it_generates(notebook, selects):
    book = notebook(SLOW, SHOW_LONG)
    book.run_all()
    book.button("Generate").wait_for()
    book.begin(tokens=3)
    if selects:
        book.tokens().nth(1).click()
        book.view().get_by_text("Token 1", exact=True).wait_for()
    # Nothing is selected otherwise, and the panel goes with the newest token until the pointer comes.
    candidate(book, "nine").or_(candidate(book, "five")).first.hover()
    at = book.view().locator(".side-title b").inner_text()
    book.wait_for_tokens(book.tokens().count() + 3)
    assert book.view().locator(".side-title b").inner_text() == at
    assert book.status().get_attribute("data-phase") == "running"
    index, kept = int(at.split()[1]), words(book).split()
    book.page.mouse.down()
    book.page.mouse.up()
    wait_for_branch(book, 2)
    book.wait_for_tokens(index + 3)
    assert book.status().get_attribute("data-phase") == "running"
    assert words(book).split()[:index] == kept[:index]
    assert book.tokens().nth(index).inner_text() in ("nine", "five")
    assert book.python("inspector.runs[0].header.stop_reason") == "stopped"
    assert book.buttons() == ["Pause", "Step", "Stop"]
    book.button("Stop").click()
    book.wait_for_phase("finished")
    book.button("Generate").wait_for()


def test_a_token_is_drawn_again(notebook):
    book = notebook(QUICK, SHOW.replace("temperature=0", "temperature=2, seed=1, ignore_eos=True"))
    book.run_all()
    book.button("Generate").wait_for()
    book.generate()
    book.tokens().nth(5).click()
    book.view().get_by_role("button", name="draw token 5 again").click()
    book.until(lambda: book.python("len(inspector.runs) == 2 and inspector.session.done"))
    book.view().get_by_test_id("origin").wait_for()
    ids = "[trace.columns['token_id'].tolist() for trace in inspector.runs]"
    first, second = book.python(ids)
    assert first[:5] == second[:5]
    assert first != second
    assert book.view().locator(".token.forced").count() == 0


def test_every_view_follows_a_branch_also_one_that_comes_late(notebook):
    book = notebook(SLOW, SHOW, "inspector", "inspector")
    book.run_cell(0)
    book.run_cell(1)
    book.button("Generate").wait_for()
    book.run_cell(2)
    book.view(1).wait_for()
    book.begin(tokens=4)
    book.wait_for_tokens(4, nth=1)
    book.tokens(1).nth(2).click()
    candidate(book, "eight", nth=1).click()
    wait_for_branch(book, 2)
    book.run_cell(3)
    book.view(2).wait_for()
    book.full_speed()
    for nth in range(3):
        book.wait_for_phase("finished", nth=nth)
        assert book.view(nth).locator('.token.forced.branched[data-index="2"]').count() == 1
        assert words(book, nth).split() == spoken(book)
        assert book.view(nth).get_by_text("Token 2", exact=True).is_visible()


@pytest.mark.parametrize("width", [1280, 420])
@pytest.mark.parametrize("dark", [False, True])
def test_a_branch_is_readable_and_fits(notebook, width, dark):
    book = notebook(QUICK, SHOW, width=width, dark=dark)
    book.run_all()
    book.button("Generate").wait_for()
    book.generate()
    book.tokens().nth(2).click()
    candidate(book, "seven").click()
    wait_for_branch(book, 2)
    book.wait_for_phase("finished")
    found = book.view().evaluate("view => look.contrasts(view)")
    names = {name for _, name, *_ in found}
    assert {"DIV.origin", "BUTTON.label take"} <= names
    assert ("SPAN.hint" in names) == (width > 420)
    assert [entry for entry in found if entry[0] < 4.5] == []
    assert book.page.evaluate("look.overflowing()") == []


def test_a_busy_engine_is_explained_and_the_next_click_works(notebook):
    book = notebook(SLOW, SHOW.replace("40", "6"))
    book.run_all()
    book.button("Generate").wait_for()
    book.generate()
    book.tokens().nth(2).click()
    book.do("other = engine.start('Count.', temperature=0, max_tokens=2000)")
    candidate(book, "nine").click()
    alert = book.page.get_by_role("alert").filter(visible=True)
    alert.wait_for()
    assert "is busy" in alert.inner_text()
    book.do("other.stop(); other.wait(5)")
    book.page.wait_for_timeout(700)
    candidate(book, "nine").click()
    wait_for_branch(book, 2)
    book.until(lambda: alert.count() == 0)
