"""The default model on MLX: the greedy text of mlx-lm itself, and torch's distributions."""

import mlx_lm
import numpy as np
import pytest
import torch

from cartoolkit.engine import Engine
from cartoolkit.engine.decoders.mlx_decoder import MlxDecoder
from cartoolkit.models import resolve

pytestmark = pytest.mark.model

PROMPTS = ["What is the capital of France?", "Name a mammal that can fly."]
TEXT = """The water cycle moves water around the Earth. The sun warms the sea, and water rises as vapour.
High above it cools, becomes clouds, and falls again as rain or snow."""


@pytest.fixture(scope="module")
def engine():
    with Engine(lambda: MlxDecoder.load(resolve(None), dtype="float32")) as engine:
        yield engine


def test_greedy_text_is_that_of_mlx_lm(engine):
    model, tokenizer = mlx_lm.load(str(resolve(None).path))
    for prompt in PROMPTS:
        ours = engine.generate([{"role": "user", "content": prompt}], temperature=0, max_tokens=12)
        ids = [int(i) for i in ours.trace.prompt_ids]
        theirs = mlx_lm.generate(model, tokenizer, ids, max_tokens=12)
        assert ours.text == theirs


def test_every_token_of_a_text_has_torch_s_distribution(engine, engine32):
    """Teacher-forced, float32 on both sides."""
    ids = engine.decoder.encode(TEXT)
    assert ids == engine32.decoder.encode(TEXT)
    with torch.inference_mode():
        theirs = engine32.decoder._model(input_ids=torch.tensor([ids]), use_cache=False).logits[0]
    expected = torch.log_softmax(theirs.double(), -1).numpy()
    rows = engine._worker.run(lambda: read_all(engine.decoder, ids)).astype(np.float64)
    found = rows - np.logaddexp.reduce(rows, axis=1, keepdims=True)
    divergence = (np.exp(expected) * (expected - found)).sum(axis=1)
    print(f"mean KL {divergence.mean():.2e}, largest {divergence.max():.2e}, {len(ids)} tokens")
    assert divergence.mean() < 1e-6
    assert (found.argmax(axis=1) == expected.argmax(axis=1)).all()


def read_all(decoder, ids):
    decoder.clear_kv_cache()
    return decoder.forward_all(ids, 0).copy()
