"""The main path with the default model: generate, look at a token, pause, step, stop."""

import math
import re

import pytest

LONG_PROMPT = "The quick brown fox jumps over the lazy dog. " * 300


def prob(value):
    """A probability as the view writes it."""
    return "0" if value <= 0 else "<.001" if value < 0.0005 else f"{value:.3f}"


def click_and_time(book, button, condition):
    """Press a button and return the milliseconds until a condition on the view holds, by the page's clock."""
    return book.page.evaluate("click => look.timeOfClick(click)", [button, condition])


def test_tokens_appear_one_after_another_and_are_the_answer(sky):
    assert sky.buttons() == ["Generate"]
    # A small model answers faster than a page can be asked from outside, so it is watched from within.
    sky.view().evaluate("view => look.watch(view)")
    sky.generate()
    watched = sky.page.evaluate("look.watched")
    seen = sorted({count for count in watched["tokens"] if count})
    assert len(seen) >= 3, seen
    assert any(all(name in shown for name in ("Pause", "Step", "Stop")) for shown in watched["buttons"])
    # The buttons come and go in messages of their own.
    sky.until(lambda: sky.buttons() == ["Generate"])
    text = sky.python("inspector.result.text")
    assert text
    assert "".join(sky.python("inspector.trace.texts")) == text
    shown = sky.view().get_by_test_id("tokens").evaluate("tokens => look.text(tokens)")
    assert shown == text
    assert sky.tokens().count() == sky.python("len(inspector.trace)") == 24


def test_a_token_that_is_clicked_shows_the_numbers_of_the_trace(sky):
    sky.generate()
    panel = sky.view().get_by_test_id("candidates")
    for index in (1, 7, 23):
        sky.tokens().nth(index).click()
        panel.get_by_text(f"Token {index}", exact=True).wait_for()
        step = sky.python(
            "(lambda s: {'id': s.token_id, 'raw': s.prob, 'drawn': s.processed_logprob, 'rank': s.rank, "
            "'entropy': s.entropy, 'rest': s.rest_mass, 'drawn_rest': s.processed_rest_mass, "
            "'candidates': [[c.text, c.prob, c.processed_prob, c.removed_by] for c in s.candidates]})"
            f"(inspector.trace[{index}])"
        )
        figures = dict(
            zip(panel.locator("dt").all_inner_texts(), panel.locator("dd").all_inner_texts(), strict=True)
        )
        assert figures["raw"] == prob(step["raw"])
        assert figures["sampled"] == prob(math.exp(step["drawn"]))
        assert figures["rank"] == str(step["rank"])
        assert figures["id"] == str(step["id"])
        assert figures["entropy"] == f"{step['entropy']:.2f} nats"
        rows = [row.locator("td").all_inner_texts() for row in panel.get_by_test_id("candidate").all()]
        assert len(rows) == 10
        for rank, (row, (text, raw, drawn, removed_by)) in enumerate(
            zip(rows, step["candidates"], strict=False), 1
        ):
            assert row[0] == str(rank)
            assert row[1].replace("␣", " ").replace("⏎", "\n") == text
            assert row[3:5] == [prob(raw), prob(drawn) if drawn else "–"]
            assert (removed_by or "").replace("_", "-") in row[5]
        rest = panel.locator("tr.others td").all_inner_texts()
        hidden = step["candidates"][10:]
        drawn_rest = step["drawn_rest"] + sum(c[2] for c in hidden)
        assert rest[-3] == prob(step["rest"] + sum(c[1] for c in hidden))
        assert rest[-2] == (prob(drawn_rest) if drawn_rest > 1e-6 else "–")
        assert math.isclose(sum(c[1] for c in step["candidates"]) + step["rest"], 1, abs_tol=1e-5)


def test_arrow_keys_walk_over_the_tokens_and_python_knows_the_choice(sky):
    sky.generate()
    sky.tokens().nth(4).click()
    sky.view().locator('[data-index="4"][aria-selected="true"]').wait_for()
    sky.until(lambda: sky.python("inspector.view.selected") == 4)
    for key, index in (("ArrowRight", 5), ("ArrowRight", 6), ("ArrowLeft", 5), ("Home", 0), ("End", 23)):
        sky.page.keyboard.press(key)
        sky.page.keyboard.press("Enter")
        sky.view().locator(f'[data-index="{index}"][aria-selected="true"]').wait_for()
        sky.until(lambda index=index: sky.python("inspector.view.selected") == index)
    sky.page.keyboard.press("Escape")
    sky.view().get_by_text("the last token").wait_for()
    sky.until(lambda: sky.python("inspector.view.selected") is None)
    sky.do("inspector.view.selected = 9")
    sky.view().locator('[data-index="9"][aria-selected="true"]').wait_for()


def test_pause_step_resume_and_stop_take_effect_at_once(slow_sky):
    slow_sky.do("inspector.controls.max_tokens.value = 2000")
    slow_sky.slow_down(150)
    slow_sky.begin(tokens=3)
    times = {"Pause": click_and_time(slow_sky, "Pause", "view.phase() === 'paused'")}
    count = slow_sky.tokens().count()
    slow_sky.page.wait_for_timeout(500)
    assert slow_sky.tokens().count() == count == slow_sky.python("len(inspector.session.steps)")
    assert slow_sky.buttons() == ["Resume", "Step", "Stop"]
    for expected in (count + 1, count + 2):
        times["Step"] = click_and_time(slow_sky, "Step", "view.count() === before + 1")
        slow_sky.wait_for_phase("paused")
        slow_sky.page.wait_for_timeout(200)
        assert slow_sky.tokens().count() == expected == slow_sky.python("len(inspector.session.steps)")
    times["Resume"] = click_and_time(slow_sky, "Resume", "view.count() > before + 1")
    slow_sky.button("Pause").wait_for()
    before = slow_sky.tokens().count()
    times["Stop"] = click_and_time(slow_sky, "Stop", "view.phase() === 'finished'")
    print("ms from click to effect:", {name: round(ms) for name, ms in times.items()})
    assert max(times.values()) < 2000
    # The click itself and its way to the kernel take a few tokens' time at most.
    assert slow_sky.tokens().count() <= before + 10
    assert slow_sky.python("inspector.result.stop_reason") == "stopped"
    assert "ended by you" in slow_sky.status().inner_text()
    assert slow_sky.tokens().count() == slow_sky.python("len(inspector.trace)")


def test_stop_ends_the_reading_of_a_long_prompt(sky):
    sky.do(f"inspector.prompt.value = {LONG_PROMPT!r}; engine.decoder.clear_kv_cache()")
    sky.press_generate()
    bar = sky.view().get_by_role("progressbar")
    bar.wait_for()
    sky.page.wait_for_function(
        """() => {
            const root = document.querySelector(".cartoolkit-run").shadowRoot;
            const bar = root.querySelector("[role=progressbar]");
            return !bar.hidden && Number(bar.getAttribute("aria-valuenow")) > 0;
        }"""
    )
    assert re.search(r"reading the prompt [\d,]+ / 3,\d{3} tokens", sky.status().inner_text())
    milliseconds = click_and_time(sky, "Stop", "view.phase() === 'finished'")
    print("ms from Stop to the end of the prefill:", round(milliseconds))
    assert milliseconds < 3000
    assert sky.tokens().count() == 0
    assert not bar.is_visible()
    assert sky.python("inspector.result.stop_reason") == "stopped"
    assert sky.python("inspector.session.progress.done < inspector.session.progress.total")
    sky.do("inspector.prompt.value = 'Why is the sky blue?'")
    sky.generate()
    assert sky.tokens().count() == 24


def test_the_threshold_is_dragged_and_python_follows(sky):
    sky.generate()
    line = sky.view().get_by_test_id("threshold").locator("rect.grip")
    box = line.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    sky.page.mouse.move(x, y)
    sky.page.mouse.down()
    sky.page.mouse.move(x, y - 20, steps=5)
    sky.page.mouse.move(x, y - 40, steps=5)
    sky.page.mouse.up()
    sky.page.wait_for_timeout(400)
    shown = float(sky.view().get_by_test_id("threshold").get_attribute("aria-valuetext"))
    assert shown > 0.5
    assert sky.python("inspector.view.threshold") == pytest.approx(shown, abs=0.005)
    low = sky.python("sum(bool(p < inspector.view.threshold) for p in inspector.trace.columns['max_prob'])")
    assert sky.view().locator(".token.low").count() == low > 0
    sky.do("inspector.view.threshold = 0.1")
    sky.view().get_by_text("below 0.10", exact=True).first.wait_for()


def test_the_end_of_a_run_disturbs_nobody(slow_sky):
    """The static twin is written then; the live view must stay what and where it is."""
    slow_sky.begin(tokens=3)
    slow_sky.tokens().nth(1).click()
    slow_sky.page.keyboard.press("ArrowRight")
    slow_sky.page.evaluate("look.watchHeights()")
    assert slow_sky.status().get_attribute("data-phase") == "running"
    slow_sky.full_speed()
    slow_sky.wait_for_phase("finished")
    slow_sky.button("Generate").wait_for()
    slow_sky.page.wait_for_timeout(700)
    after = slow_sky.page.evaluate("look.whatWasWatched()")
    assert (after["views"], after["same"], after["focused"]) == (1, True, "2")
    assert len(after["heights"]) <= 3, after["heights"]
    assert max(after["heights"]) - min(after["heights"]) < 80, after["heights"]
    assert slow_sky.python("inspector.view.selected") == 1


def test_one_can_go_on_typing_while_a_run_ends(slow_sky):
    slow_sky.begin(tokens=2)
    box = slow_sky.page.get_by_placeholder("Ask something")
    box.click()
    slow_sky.page.keyboard.press("Control+End")
    slow_sky.page.keyboard.type(" And")
    assert slow_sky.status().get_attribute("data-phase") == "running"
    slow_sky.full_speed()
    slow_sky.wait_for_phase("finished")
    slow_sky.page.wait_for_timeout(500)
    slow_sky.page.keyboard.type(" green?")
    assert box.input_value() == "Why is the sky blue? And green?"
    assert slow_sky.python("inspector.trace.header.prompt") == "Why is the sky blue?"


def test_a_double_click_on_generate_starts_one_whole_run(sky):
    sky.page.wait_for_timeout(500)
    before = sky.python("id(inspector.session)")
    box = sky.button("Generate").bounding_box()
    for _ in range(2):
        sky.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        sky.page.wait_for_timeout(150)
    sky.until(lambda: sky.python(f"id(inspector.session) != {before} and inspector.session.done"))
    assert sky.python("inspector.result.stop_reason") == "length"
    assert sky.page.get_by_role("alert").filter(visible=True).count() == 0


def test_generate_is_pressed_by_the_keyboard(sky):
    for key in ("Enter", "Space"):
        before = sky.python("id(inspector.session)")
        sky.button("Generate").focus()
        sky.page.keyboard.press(key)
        sky.until(lambda before=before: sky.python("id(inspector.session)") != before)
        sky.until(lambda: sky.python("inspector.session.done"))
        sky.button("Generate").wait_for()


def test_the_keyboards_focus_stays_on_the_button_that_was_pressed(slow_sky):
    focused = lambda: slow_sky.page.evaluate("document.activeElement.textContent.trim()")  # noqa: E731
    press = slow_sky.page.keyboard.press
    slow_sky.do("inspector.controls.max_tokens.value = 2000")
    before = slow_sky.python("id(inspector.session)")
    slow_sky.page.get_by_placeholder("Ask something").click()
    press("Shift+Tab")
    assert focused() == "Generate"
    press("Enter")
    slow_sky.until(lambda: slow_sky.python("id(inspector.session)") != before)
    slow_sky.wait_for_tokens(3)
    assert focused() == "Generate"
    assert slow_sky.buttons() == ["Generate", "Pause", "Step", "Stop"]
    press("Enter")
    press("Tab")
    assert focused() == "Pause"
    assert slow_sky.buttons() == ["Pause", "Step", "Stop"]
    press("Enter")
    slow_sky.wait_for_phase("paused")
    slow_sky.until(lambda: focused() == "Resume")
    count = slow_sky.tokens().count()
    press("Tab")
    press("Enter")
    slow_sky.wait_for_tokens(count + 1)
    assert focused() == "Step"
    press("Tab")
    press("Enter")
    slow_sky.wait_for_phase("finished")
    slow_sky.until(lambda: slow_sky.buttons() == ["Generate", "Stop"])
    assert focused() == "Stop"
    press("Enter")
    press("Shift+Tab")
    assert focused() == "Generate"
    assert slow_sky.buttons() == ["Generate"]
    assert slow_sky.python("inspector.result.stop_reason") == "stopped"
    assert slow_sky.tokens().count() == count + 1


def test_a_click_that_comes_when_the_run_has_just_ended_starts_no_other(slow_sky):
    """Generate takes the place of Stop then."""
    slow_sky.begin(tokens=3)
    session = slow_sky.python("id(inspector.session)")
    box = slow_sky.button("Stop").bounding_box()
    slow_sky.page.evaluate(
        "place => look.clickWhenGenerateStandsAt(place)",
        [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2],
    )
    slow_sky.full_speed()
    slow_sky.page.wait_for_function("look.clicked", timeout=60_000)
    slow_sky.page.wait_for_timeout(600)
    assert slow_sky.python("id(inspector.session)") == session
    slow_sky.generate()


def test_values_between_a_sliders_steps_survive_being_shown(sky):
    sky.do("inspector.controls.temperature.value, inspector.controls.top_p.value = 0.73, 0.955")
    sky.generate()
    assert sky.python("[inspector.trace.header.params[k] for k in ('temperature', 'top_p')]") == [0.73, 0.955]
    sky.do("inspector.controls.temperature.value, inspector.controls.top_p.value = 0.7, 0.9")


def test_nothing_is_asked_of_another_host(sky):
    sky.generate()
    hosts = {re.match(r"(blob|data):|https?://([^/:]+)", url).group(0) for url in sky.requests}
    assert hosts <= {"blob:", "data:", "http://127.0.0.1"}
    assert len(sky.requests) > 20


def test_the_page_has_nothing_to_complain_about(sky):
    sky.generate()
    assert sky.complaints == []
