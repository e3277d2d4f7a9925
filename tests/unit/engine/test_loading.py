"""`load` with real engines: the line that it prints, and when an engine that is loaded is used again."""

import re

import pytest

from cartoolkit.engine import load
from cartoolkit.errors import InvalidRequest
from cartoolkit.models import resolve

pytestmark = pytest.mark.model


@pytest.fixture
def loaded():
    """Loads and closes afterwards."""
    engines = []

    def load_it(**settings):
        engines.append(load(**{"context_length": 600, "engine": "gguf", **settings}))
        return engines[-1]

    yield load_it
    for engine in engines:
        engine.close()


def said(capsys):
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    return lines[0]


def test_the_line_says_what_was_taken_and_why_not_the_others(capsys):
    with load(context_length=512):
        assert re.fullmatch(
            r"SmolLM2-135M-Instruct: llama\.cpp \(fits context_length\) on cpu \(llama\.cpp was built "
            r"without a GPU\), Q4_1 \(as the file has it\), context 512 tokens, loaded in \d+\.\d s; "
            r"not torch and mlx \(needs no context_length\)",
            said(capsys),
        )


@pytest.mark.parametrize(
    ("engine", "library", "settings"),
    [("torch", "torch", {"dtype": "float32"}), ("mlx", "mlx", {}), ("llama.cpp", "llama.cpp", {})],
)
def test_the_default_model_is_had_on_every_engine_by_name(capsys, engine, library, settings):
    model = load(engine=engine, **settings)
    assert said(capsys).startswith(f"SmolLM2-135M-Instruct: {library} (asked for) on ")
    assert model.info.engine == library
    assert model.generate("Count to three.", temperature=0, max_tokens=3).usage.completion_tokens > 0


def test_quiet_says_nothing(loaded, capfd):
    loaded(quiet=True)
    assert capfd.readouterr() == ("", "")


def test_the_same_settings_are_one_engine_and_others_are_another(loaded, capsys):
    first = loaded()
    assert loaded() is first
    assert "used again, as it was loaded already" in capsys.readouterr().out
    assert loaded(model=resolve(None, formats=("gguf",)).path) is first
    assert loaded(context_length=700) is not first
    assert loaded(device="cpu") is first


def test_a_fresh_engine_is_another_one_and_does_not_take_the_place_of_the_first(loaded):
    first, fresh = loaded(), loaded(fresh=True)
    assert fresh is not first
    assert loaded() is first
    first.close()
    assert loaded() not in (first, fresh)


def test_a_device_that_llama_cpp_was_not_built_for_is_refused(loaded):
    with pytest.raises(InvalidRequest, match=r"device 'gpu' is not available: .* for the processor only"):
        loaded(device="gpu")
    for device in ("cuda:0", "tpu"):
        said = f"device must be 'cpu' or 'gpu' for the gguf engine; got '{device}'"
        with pytest.raises(InvalidRequest, match=said):
            loaded(device=device)
