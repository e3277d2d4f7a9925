"""Cells that wait for an answer, and a whole notebook that is run."""

import shutil

import pytest
from conftest import ROOT

SLOW = "import cartoolkit as ct, stage\nengine = stage.endless()"
SHOW = "inspector = ct.Inspector(engine, 'Count.', temperature=0, max_tokens=2000)\ninspector"
AWAIT = "inspector.start()\nresult = await inspector.session"
BLOCK = "result = engine.generate('Count.', temperature=0, max_tokens=2000)"
NOTEBOOK = "01_first_look.ipynb"


def assert_ended_early(book, cell):
    """The cell ended with what there was, nothing was printed, and the engine answers again."""
    book.wait_until_idle()
    assert book.python("[result.stop_reason, 0 < len(result.trace) < 100]") == ["stopped", True]
    assert book.output_types()[cell] == []
    assert book.python("len(engine.generate('Count.', temperature=0, max_tokens=3).trace)") == 3


@pytest.mark.parametrize("how", ["toolbar", "menu", "stop"])
def test_a_cell_that_awaits_the_session_ends_with_what_there_is(notebook, how):
    book = notebook(SLOW, SHOW, AWAIT)
    book.run_all()
    book.wait_for_tokens(3)
    if how == "toolbar":
        book.interrupt()
    elif how == "menu":
        book.menu("Kernel", "kernelmenu:interrupt")
    else:
        book.button("Stop").click()
    book.wait_for_phase("finished", timeout=5_000)
    book.button("Generate").wait_for()
    assert "ended by you" in book.status().inner_text()
    assert_ended_early(book, 2)
    assert book.tokens().count() == book.python("len(result.trace)")


def test_an_interrupt_ends_a_cell_that_blocks(notebook, lab):
    book = notebook(SLOW, "engine.decoder.sign = 'blocking.sign'", BLOCK)
    book.run_all()
    # A kernel that is busy answers no question.
    book.until((lab[0] / "blocking.sign").exists)
    book.interrupt()
    assert_ended_early(book, 2)


@pytest.mark.model
def test_an_interrupt_ends_a_cell_that_awaits_the_default_model(slow_sky):
    slow_sky.do("inspector.controls.max_tokens.value = 2000")
    cell = slow_sky.page.locator(".jp-Notebook .jp-Cell").nth(2).locator(".cm-content")
    cell.fill(AWAIT)
    before = slow_sky.python("id(inspector.session)")
    slow_sky.run_cell(2)
    slow_sky.until(lambda: slow_sky.status().get_attribute("data-phase") in ("prefilling", "running"))
    slow_sky.wait_for_tokens(3)
    slow_sky.interrupt()
    slow_sky.wait_for_phase("finished", timeout=5_000)
    slow_sky.wait_until_idle()
    assert slow_sky.python(f"id(inspector.session) != {before} and result.stop_reason") == "stopped"
    assert slow_sky.output_types()[2] == []
    slow_sky.do("inspector.controls.max_tokens.value = 24")
    slow_sky.full_speed()
    slow_sky.generate()
    assert slow_sky.python("inspector.result.stop_reason") == "length"


@pytest.mark.model
@pytest.mark.timeout(300)
def test_the_first_notebook_is_read_without_running_it_and_then_runs(notebook, lab):
    """In a window so high that Lab has no reason to leave out a cell."""
    shutil.copy(ROOT / "notebooks" / NOTEBOOK, lab[0] / NOTEBOOK)
    book = notebook(name=NOTEBOOK, height=9000)
    page = book.page
    assert "Trusted" not in page.locator("#jp-main-statusbar").inner_text()
    assert page.get_by_text("least sure tokens").count() == 2
    assert page.locator(".jp-OutputArea table").filter(visible=True).count() >= 1
    assert page.locator(".jp-OutputArea img").count() == 2
    assert page.get_by_test_id("run-view").count() == 0
    assert "rror" not in "".join(page.locator(".jp-OutputArea").all_inner_texts())

    book.run_all()
    book.wait_for_phase("finished", nth=1, timeout=120_000)
    book.wait_until_idle()
    assert page.get_by_test_id("run-view").count() == 2
    first, second = (book.view(n).get_by_test_id("tokens").inner_text() for n in (0, 1))
    assert first == second != ""
    assert book.python("result.text == inspector.result.text != ''")
    assert page.get_by_text("least sure tokens").filter(visible=True).count() == 0
    assert all("error" not in kinds for kinds in book.output_types())
    assert book.complaints == []


def test_after_two_thousand_tokens_the_page_answers_at_once(notebook):
    book = notebook(
        "import cartoolkit as ct, stage\nengine = stage.play(length=2000, context_length=5000)",
        "inspector = ct.Inspector(engine, 'Count.', temperature=0, max_tokens=2100)\ninspector",
    )
    book.run_all()
    book.button("Generate").wait_for()
    book.page.evaluate("look.watchFrames()")
    book.generate()
    assert book.tokens().count() == 2001
    longest = book.page.evaluate("look.longest")
    times = [book.page.evaluate("index => look.timeOfToken(index)", index) for index in (3, 1500, 2000)]
    print(f"ms: longest frame {longest:.0f}, clicks {[round(ms) for ms in times]}")
    assert max(times) < 1000
    assert longest < 2000
