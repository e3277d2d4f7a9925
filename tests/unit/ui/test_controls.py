"""The controls show what they were given and give it back; the buttons fit the state."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cartoolkit.requests import GenerateParams
from cartoolkit.ui.controls import Buttons, SamplerControls

PARAMS = st.builds(
    GenerateParams,
    temperature=st.floats(0, 9, allow_nan=False),
    top_k=st.integers(0, 5000),
    top_p=st.floats(1e-6, 1),
    min_p=st.floats(0, 1),
    repeat_penalty=st.floats(1e-3, 50),
    max_tokens=st.integers(1, 10**7),
    seed=st.integers(0, 2**63 - 1),
    stop=st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=5), max_size=3),
    logit_bias=st.dictionaries(st.integers(0, 9), st.floats(-5, 5), max_size=2),
    candidates=st.integers(1, 1000),
    time_limit=st.none() | st.floats(1, 900),
)


@settings(max_examples=40, deadline=None)
@given(PARAMS)
def test_untouched_controls_give_back_what_was_given(params):
    assert GenerateParams(**SamplerControls(params).params()) == params


@settings(max_examples=20, deadline=None)
@given(PARAMS)
def test_controls_that_are_set_give_their_values(params):
    controls = SamplerControls(GenerateParams())
    for name in ("temperature", "top_k", "top_p", "min_p", "repeat_penalty", "max_tokens", "seed"):
        control = getattr(controls, name)
        value = min(max(getattr(params, name), control.min), control.max)
        control.value = value
        assert controls.params()[name] == value
    GenerateParams(**controls.params())


@pytest.mark.parametrize(
    ("typed", "stop"), [("", []), ("END", ["END"]), ("\\n", ["\n"]), ("a\\n\\nb", ["a\n\nb"]), ("\n", ["\n"])]
)
def test_a_new_line_is_typed_as_backslash_n(typed, stop):
    controls = SamplerControls(GenerateParams())
    controls.stop.value = typed
    assert controls.params()["stop"] == stop


def test_stop_strings_that_were_given_are_shown_in_one_line():
    controls = SamplerControls(GenerateParams(stop=["\n\n", "END"]))
    assert controls.stop.value == "\\n\\n | END"
    controls.stop.value = ""
    assert controls.params()["stop"] == []


def test_each_run_gets_a_new_seed_only_where_none_was_given():
    assert SamplerControls(GenerateParams(seed=None)).new_seed.value
    assert not SamplerControls(GenerateParams(seed=0)).new_seed.value


def shown(buttons):
    return buttons.shown


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("waiting", ["Pause", "Step", "Stop"]),
        ("prefilling", ["Pause", "Step", "Stop"]),
        ("running", ["Pause", "Step", "Stop"]),
        ("paused", ["Resume", "Step", "Stop"]),
        ("finished", ["Generate"]),
        ("failed", ["Generate"]),
    ],
)
def test_the_buttons_are_those_that_make_sense(state, expected):
    buttons = Buttons()
    assert shown(buttons) == ["Generate"]
    buttons.show_state(state)
    assert shown(buttons) == expected
    buttons.show_state("finished")
    assert shown(buttons) == ["Generate"]
