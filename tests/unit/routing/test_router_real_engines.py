"""The router over the default model on two engines: the first one fails in every way, the next answers."""

import time

import pytest

import cartoolkit as ct
from cartoolkit.errors import EngineBusy, ForwardFailed, OutOfMemory
from cartoolkit.routing import Deterministic, Registry, Router

pytestmark = pytest.mark.model

QUESTION = "What is the capital of France?"


@pytest.fixture(scope="module")
def gguf():
    with ct.load(engine="gguf", fresh=True, quiet=True) as engine:
        yield engine


@pytest.fixture
def router(gguf, engine32, tmp_path):
    """Over both engines, the one of llama.cpp first."""
    router = Router(Registry(), strategy=Deterministic(), folder=tmp_path)
    router.add(gguf)
    router.add(engine32)
    return router


@pytest.fixture(scope="module")
def by_torch(engine32):
    """What the second model answers."""
    return engine32.generate(QUESTION, temperature=0, max_tokens=8).text


def ask(router, **settings):
    answer = router.generate(QUESTION, **{"temperature": 0, "max_tokens": 8} | settings)
    assert [attempt.model_id.partition("/")[0] for attempt in answer.attempts] == ["gguf", "torch"]
    return answer


def fail_with(monkeypatch, engine, effect):
    """Let every forward of llama.cpp's decoder have an effect first."""
    usual = engine.decoder.forward

    def forward(ids, pos):
        effect()
        return usual(ids, pos)

    monkeypatch.setattr(engine.decoder, "forward", forward)


def raising(error):
    def effect():
        raise error

    return effect


def test_both_answer_by_name_and_the_trace_says_which_ran(router, gguf, by_torch):
    named = router.generate(QUESTION, model="gguf/SmolLM2-135M-Instruct", temperature=0, max_tokens=8)
    assert named.text == gguf.generate(QUESTION, temperature=0, max_tokens=8).text
    assert named.trace.header.model.engine == "llama.cpp"
    other = router.generate(QUESTION, model="torch/SmolLM2-135M-Instruct", temperature=0, max_tokens=8)
    assert (other.text, other.trace.header.model.engine) == (by_torch, "torch")


def test_a_forward_that_raises_hands_over(router, gguf, by_torch, monkeypatch):
    fail_with(monkeypatch, gguf, raising(RuntimeError("the device is gone")))
    answer = ask(router)
    assert answer.text == by_torch
    assert isinstance(answer.attempts[0].error, ForwardFailed)
    assert "It failed after " in answer.story
    assert "the model's forward raised RuntimeError: the device is gone." in answer.story
    assert answer.story.endswith("torch/SmolLM2-135M-Instruct was asked next.")
    # The decoder is loaded again, and the model answers again.
    assert router.generate(QUESTION, model="gguf/SmolLM2-135M-Instruct", max_tokens=4).text


def test_running_out_of_memory_in_llama_cpp_hands_over(router, gguf, by_torch, monkeypatch):
    fail_with(monkeypatch, gguf, raising(MemoryError("Unable to allocate 3.00 GiB")))
    answer = ask(router)
    assert (answer.text, answer.attempts[0].reason) == (by_torch, "out_of_memory")
    assert isinstance(answer.attempts[0].error, OutOfMemory)
    assert "Unable to allocate 3.00 GiB" in answer.story


def test_running_out_of_memory_in_torch_hands_over(gguf, engine32, tmp_path, monkeypatch):
    import torch

    def refuse(*_args, **_kwargs):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB")

    router = Router(Registry(), strategy=Deterministic(), folder=tmp_path)
    second, first = router.add(gguf), router.add(engine32)
    for _ in range(2):
        router.feedback(router.generate(QUESTION, model=second.id, max_tokens=2), accepted=False)
    with monkeypatch.context() as patch:
        patch.setattr(engine32.decoder._model.model.layers[2], "forward", refuse)
        answer = router.generate(QUESTION, temperature=0, max_tokens=8)
    assert [attempt.model_id for attempt in answer.attempts] == [first.id, second.id]
    assert answer.attempts[0].reason == "out_of_memory"
    assert "21,475 MB more were needed" in answer.story


def test_running_out_of_time_hands_over(router, gguf, by_torch, monkeypatch):
    fail_with(monkeypatch, gguf, lambda: time.sleep(5))
    answer = ask(router, time_limit=8)
    assert (answer.text, answer.attempts[0].reason) == (by_torch, "timeout")
    assert answer.attempts[0].trace.header.stop_reason == "local_decode_timeout"
    assert "It ran out of time after " in answer.story


def test_an_engine_that_its_user_keeps_busy_hands_over(router, gguf, by_torch):
    session = gguf.start(QUESTION, paused=True)
    try:
        answer = ask(router)
    finally:
        session.stop()
        session.wait()
    assert answer.text == by_torch
    assert isinstance(answer.attempts[0].error, EngineBusy)
    assert router.history.tracker.profile("gguf/SmolLM2-135M-Instruct").total.fail_count == 0


def test_a_loaded_engine_of_the_catalog_answers_for_its_row(gguf, tmp_path):
    router = Router(folder=tmp_path)
    assert router.add(gguf).id == "gguf/smollm2-135m-instruct:Q4_1"
    answer = router.generate(QUESTION, model="gguf/smollm2-135m-instruct:Q4_1", max_tokens=2)
    assert gguf.session is not None
    assert gguf.session.trace.text == answer.text


def test_a_router_of_the_catalog_loads_what_it_needs_and_keeps_it(tmp_path):
    with Router(folder=tmp_path, strategy=Deterministic()) as router:
        answer = router.generate(
            QUESTION, model="gguf/smollm2-135m-instruct:Q4_1", temperature=0, max_tokens=4
        )
        assert answer.trace.header.model.engine == "llama.cpp"
        assert router.machine().loaded == {"gguf/smollm2-135m-instruct:Q4_1"}
        row = router.models.to_frame().loc["gguf/smollm2-135m-instruct:Q4_1"]
        assert (row["available"], row["weights_ready"], row["downloads_weights"]) == (True, True, True)
