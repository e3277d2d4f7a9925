"""Look-ups with the default model on every engine: an empty one changes nothing, a full one misleads none."""

import numpy as np
import pytest

from cartoolkit.engine import load
from cartoolkit.retrieval import preset

pytestmark = pytest.mark.model

QUESTION = "What is the capital of Guinea?"
PASSAGES = ["The capital of Guinea is Conakry.", "Conakry lies on the Atlantic Ocean."]
# llama.cpp packs what goes through its layers, differently for one row than for many.
ENGINES = {"torch": (1e-3, {"dtype": "float32"}), "mlx": (1e-3, {"dtype": "float32"}), "gguf": (0.5, {})}


@pytest.fixture(scope="module", params=ENGINES)
def engine(request):
    tolerance, options = ENGINES[request.param]
    with load(engine=request.param, fresh=True, quiet=True, **options) as loaded:
        yield loaded, tolerance


@pytest.mark.parametrize("policy", ["seed", "flare", "rollback"])
def test_a_retriever_that_finds_nothing_changes_nothing(engine, policy):
    loaded, _ = engine
    settings = {"temperature": 1, "seed": 4, "max_tokens": 16}
    plain = loaded.generate(QUESTION, **settings).trace
    asked = loaded.generate(QUESTION, retrieval=policy, retriever=lambda query: None, **settings).trace
    assert asked.columns["token_id"].tolist() == plain.columns["token_id"].tolist()
    assert np.array_equal(asked.columns["logprob"], plain.columns["logprob"])
    assert asked.flag("kept").all()


def test_after_a_rollback_the_numbers_are_those_of_a_fresh_read(engine):
    loaded, tolerance = engine
    found = iter(PASSAGES)
    policy = preset("rollback", threshold=0.99, max_retrievals=2)
    trace = loaded.generate(
        QUESTION, retrieval=policy, retriever=lambda query: next(found, None), temperature=0, max_tokens=16
    ).trace
    last = [event for event in trace.events if event.data["outcome"] == "found"][-1]
    assert len(last.data["added"]) == 1
    assert last.data["reused_tokens"] > 0
    assert not trace.flag("kept").all()
    answer = [int(step.token_id) for step in trace if step.kept]
    ids = [*map(int, trace.prompt_ids), *answer]

    def read():
        loaded.decoder.clear_kv_cache()
        return loaded.decoder.forward_all(ids, 0).astype(np.float64)

    rows = loaded._worker.run(read)
    logprobs = rows - np.logaddexp.reduce(rows, axis=1, keepdims=True)
    # What was decoded before the look-up saw another prompt.
    for position, step in enumerate(step for step in trace if step.kept):
        if step.index >= last.at:
            fresh = logprobs[len(trace.prompt_ids) - 1 + position]
            np.testing.assert_allclose(step.logprob, fresh[step.token_id], atol=tolerance)
