"""What the view looks like, where and when it is looked at; with a decoder that needs no model."""

import pytest

SLOW = "import cartoolkit as ct, stage\nengine = stage.endless()"
QUICK = "import cartoolkit as ct, stage\nengine = stage.play()"
SHOW = "inspector = ct.Inspector(engine, 'Count to ten.', temperature=0, max_tokens=300)\ninspector"
TEN = " one two three four five six seven eight nine ten"


def words(book, nth=0):
    return "".join(book.tokens(nth).all_text_contents())


def test_a_second_view_shows_the_same_while_it_runs_and_after_the_end(notebook):
    book = notebook(SLOW, SHOW, "inspector", "inspector")
    book.run_cell(0)
    book.run_cell(1)
    book.button("Generate").wait_for()
    book.begin(tokens=5)
    book.run_cell(2)
    book.wait_for_tokens(5, nth=1)
    assert book.status().get_attribute("data-phase") == "running"
    book.full_speed()
    book.wait_for_phase("finished", nth=0)
    book.wait_for_phase("finished", nth=1)
    book.run_cell(3)
    book.wait_for_phase("finished", nth=2)
    texts = [book.view(n).get_by_test_id("tokens").inner_text() for n in range(3)]
    assert texts[0] == texts[1] == texts[2]
    assert [book.tokens(n).count() for n in range(3)] == [300] * 3
    book.tokens(2).nth(7).click()
    for n in (0, 1):
        book.view(n).locator('[data-index="7"][aria-selected="true"]').wait_for()


def test_a_failing_model_is_explained_and_the_next_run_works(notebook):
    book = notebook("import cartoolkit as ct, stage\nengine = stage.play(fail_at=5)", SHOW)
    book.run_all()
    book.generate()
    failure = book.view().get_by_test_id("failure")
    assert "the model's forward raised RuntimeError: no memory for this" in failure.inner_text()
    assert "reloaded on the next call" in failure.inner_text()
    assert words(book) == "onetwothreefourfive"
    book.generate()
    assert not failure.is_visible()
    assert book.python("inspector.result.text") == TEN
    assert_clean(book)


def assert_clean(book):
    """No error and nothing printed in any output."""
    outputs = [output for cell in book.save().cells for output in cell.outputs]
    assert {output.output_type for output in outputs} <= {"display_data", "execute_result"}


def test_a_refused_setting_is_one_sentence_near_the_prompt(notebook):
    book = notebook(QUICK, SHOW)
    book.run_all()
    prompt = book.page.get_by_placeholder("Ask something")
    prompt.fill("   ")
    book.button("Generate").click()
    alert = book.page.get_by_role("alert").filter(visible=True)
    alert.wait_for()
    assert alert.inner_text().startswith("There is no prompt yet")
    gap = alert.bounding_box()["y"] - (prompt.bounding_box()["y"] + prompt.bounding_box()["height"])
    assert -10 < gap < 60
    prompt.fill("Count.")
    prompt.blur()
    book.generate()
    assert alert.count() == 0
    assert_clean(book)


def test_a_prompt_that_was_cut_is_noticed(notebook):
    book = notebook("import cartoolkit as ct, stage\nengine = stage.play(context_length=40)", SHOW)
    book.run_all()
    book.button("Generate").wait_for()
    book.do("inspector.prompt.value = 'word ' * 100")
    book.generate()
    notice = book.view().get_by_test_id("notices")
    assert "its first 70 of 100 tokens were cut" in notice.inner_text()


@pytest.mark.parametrize("dark", [False, True])
def test_text_is_readable_in_both_themes(notebook, dark):
    book = notebook("import cartoolkit as ct, stage\nengine = stage.play(context_length=40)", SHOW, dark=dark)
    book.run_all()
    book.button("Generate").wait_for()
    theme = book.page.locator("body").get_attribute("data-jp-theme-light")
    assert theme == str(not dark).lower()
    book.do("inspector.prompt.value = 'word ' * 100")
    book.generate()
    book.view().evaluate("view => look.colourAll(view)")
    found = book.view().evaluate("view => look.contrasts(view)")
    assert sum("token" in name for _, name, *_ in found) >= 10
    assert [entry for entry in found if entry[0] < 4.5] == []


@pytest.mark.parametrize("width", [700, 420])
def test_nothing_overflows_in_a_narrow_window(notebook, width):
    book = notebook(QUICK, SHOW, width=width)
    book.run_all()
    book.button("Generate").wait_for()
    settings = book.page.get_by_text("min-p", exact=True)
    assert not settings.is_visible()
    book.page.get_by_role("button", name="More settings").press("Enter")
    settings.wait_for()
    prompt = book.page.get_by_placeholder("Ask something")
    place = prompt.bounding_box()
    for state, first in (("running", "Pause"), ("finished", "Generate")):
        book.do(f"inspector.buttons.show_state({state!r})")
        book.button(first).wait_for()
        assert prompt.bounding_box() == place
        assert book.page.evaluate("look.overflowing()") == []
    book.generate()
    assert book.page.evaluate("look.overflowing()") == []
    book.page.set_viewport_size({"width": 1280, "height": 1100})
    book.page.wait_for_timeout(300)
    assert book.page.evaluate("look.overflowing()") == []


def test_running_the_cell_again_while_it_runs_leaves_nothing_stuck(notebook):
    book = notebook(SLOW, SHOW)
    book.run_all()
    book.button("Generate").wait_for()
    book.begin(tokens=3)
    book.run_cell(1)
    book.until(lambda: book.tokens().count() == 0 and book.buttons() == ["Generate"])
    book.button("Generate").click()
    alert = book.page.get_by_role("alert").filter(visible=True)
    alert.wait_for()
    assert "is busy" in alert.inner_text()
    book.do("engine.session.stop(); engine.session.wait(5)")
    book.begin(tokens=3)
    book.button("Stop").click()
    book.wait_for_phase("finished")
    assert book.page.get_by_test_id("run-view").count() == 1
    assert_clean(book)


def test_after_a_restart_the_cells_run_as_new(notebook):
    book = notebook(SLOW, SHOW)
    book.run_all()
    book.button("Generate").wait_for()
    book.begin(tokens=3)
    book.menu("Kernel", "runmenu:restart-and-run-all")
    book.page.locator(".jp-Dialog .jp-mod-accept").click()
    book.until(
        lambda: book.page.get_by_test_id("token").count() == 0 and book.button("Generate").count() == 1
    )
    book.forget_kernel()
    book.begin(tokens=3)
    book.button("Stop").click()
    book.wait_for_phase("finished")
    assert book.page.get_by_test_id("run-view").count() == 1


def test_closing_leaves_the_static_twin(notebook):
    book = notebook(QUICK, SHOW)
    book.run_all()
    book.button("Generate").wait_for()
    book.generate()
    twin = book.page.locator("[class^=cartoolkit-twin]")
    assert not twin.is_visible()
    book.do("inspector.close()")
    twin.wait_for()
    assert TEN.strip() in twin.inner_text()
    book.page.get_by_test_id("run-view").wait_for(state="detached")
