"""The MLX decoder on tiny random models, with logits of mlx-lm itself as the reference."""

import gc
import subprocess
import sys
import threading
import time

import mlx.core as mx
import mlx_lm.utils
import numpy as np
import pytest
import tiny_checkpoints
import torch
from mlx_lm.models.cache import ChunkedKVCache
from tiny_checkpoints import saved

from cartoolkit.engine import Engine
from cartoolkit.engine.decoders.mlx_cache import MlxCache
from cartoolkit.engine.decoders.mlx_decoder import MlxDecoder
from cartoolkit.errors import EngineClosed, ForwardFailed
from cartoolkit.models import inspect_checkpoint

IDS = [int(i) for i in np.random.default_rng(0).integers(4, tiny_checkpoints.VOCABULARY, 30)]
WINDOW = tiny_checkpoints.WINDOW


def decoder_of(folder, **settings):
    return MlxDecoder.load(inspect_checkpoint(folder), **settings)


def reference(folder, ids):
    """mlx-lm's own loader and forward, without a cache, float32 [len(ids), vocab]."""
    model, _ = mlx_lm.utils.load_model(folder)
    return np.array(model(mx.array([ids]))[0].astype(mx.float32))


def torch_reference(name, ids, **settings):
    with torch.inference_mode():
        model = tiny_checkpoints.build(name, **settings)
        return model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].numpy()


def read(decoder, ids, chunk=5, *, repeatable=False):
    """Logits after the last id the way the loop reads a prompt; also how many tokens were re-used."""
    start = done = decoder.begin_prompt(ids, repeatable=repeatable)
    while len(ids) - done > chunk:
        decoder.prefill(ids[done : done + chunk], done)
        done += chunk
    return decoder.forward(ids[done:], done).copy(), start


# Reading


@pytest.mark.parametrize("name", ["llama_tied", "qwen3", "gemma2"])
def test_reading_in_chunks_gives_the_logits_of_one_forward_of_mlx_lm(name):
    rows = reference(saved(name), IDS)
    decoder = decoder_of(saved(name))
    logits, reused = read(decoder, IDS)
    assert (logits.dtype, logits.shape, reused) == (np.float32, (tiny_checkpoints.VOCABULARY,), 0)
    np.testing.assert_allclose(logits, rows[-1], atol=1e-4)
    decoder.clear_kv_cache()
    np.testing.assert_allclose(decoder.forward_all(IDS, 0), rows, atol=1e-4)


def test_reading_a_prompt_computes_no_logits():
    vocabulary = 100_000
    decoder = decoder_of(saved("llama", vocab_size=vocabulary))
    row = vocabulary * 4
    before = mx.get_active_memory()
    mx.reset_peak_memory()
    decoder.prefill(IDS, 0)
    assert mx.get_peak_memory() - before < row
    mx.reset_peak_memory()
    decoder.forward(IDS, len(IDS))
    # One row, and perhaps a copy in float32; not one for each token.
    assert row <= mx.get_peak_memory() - before < 5 * row


def test_float32_logits_are_not_copied():
    logits = decoder_of(saved("llama")).forward(IDS, 0)
    assert not logits.flags.owndata
    assert not logits.base.flags.owndata


def test_half_precision_logits_come_as_float32():
    decoder = decoder_of(saved("llama"), dtype="bfloat16")
    logits = decoder.forward(IDS, 0)
    exact = torch_reference("llama", IDS)[-1]
    assert (decoder.info.dtype, logits.dtype) == ("bfloat16", np.float32)
    # Three decimal digits; the logits of different tokens are about 2 apart.
    assert 0 < np.abs(logits - exact).max() < 0.3


# Re-use


def test_the_same_prompt_again_reads_one_token_only_where_the_cache_can_be_cropped():
    decoder = decoder_of(saved("llama"))
    first, _ = read(decoder, IDS)
    again, reused = read(decoder, IDS)
    assert reused == len(IDS) - 1
    np.testing.assert_allclose(again, first, atol=1e-4)
    assert decoder.begin_prompt([*IDS[:10], 5, 5]) == 10


@pytest.mark.parametrize("name", ["mistral_with_a_window", "gemma3"])
def test_a_window_that_has_moved_on_is_read_again_from_the_start(name):
    decoder = decoder_of(saved(name))
    read(decoder, IDS)
    assert decoder.begin_prompt([*IDS[:20], 5, 5]) == 0
    read(decoder, IDS[: WINDOW - 1])
    # These fit into the window, so nothing has been lost yet.
    assert decoder.begin_prompt([*IDS[:4], 5, 5]) == 4


@pytest.mark.parametrize("name", ["qwen3_next", "lfm2", "falcon_h1"])
def test_a_recurrent_state_goes_on_but_never_back(name):
    decoder = decoder_of(saved(name))
    read(decoder, IDS[:20])
    assert decoder.begin_prompt(IDS) == 20
    assert decoder.begin_prompt([*IDS[:10], 5]) == 0


def test_a_cache_that_has_let_go_of_its_beginning_is_not_cropped_whatever_it_says():
    layer = ChunkedKVCache(chunk_size=4)
    cache = MlxCache(lambda: [layer], chunk=16)
    rows = mx.zeros((1, 1, 6, 8))
    layer.update_and_fetch(rows, rows)
    cache.extend(list(range(6)))
    assert cache.is_croppable
    layer.maybe_trim_front()
    assert layer.is_trimmable()
    assert not cache.is_croppable
    assert cache.keep_prefix_of([0, 1, 2, 9], repeatable=False) == 0


def test_a_repeatable_read_keeps_only_whole_chunks_that_were_read_in_one_go():
    decoder = decoder_of(saved("llama"))
    decoder._cache._chunk = 8
    read(decoder, IDS, chunk=8)
    assert decoder.begin_prompt(IDS, repeatable=True) == 24
    read(decoder, IDS, chunk=8)
    assert decoder.begin_prompt([*IDS[:12], 5, 5], repeatable=True) == 8
    # A whole chunk whose logits were wanted was read as two, unlike in the middle of a longer prompt.
    decoder.forward(IDS[8:16], 8)
    assert decoder.begin_prompt(IDS, repeatable=True) == 8


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("llama", "float32"),
        ("llama", "bfloat16"),
        ("mistral_with_a_window", "bfloat16"),
        ("lfm2", "bfloat16"),
        ("qwen3_next", "float32"),
    ],
)
def test_a_repeatable_read_gives_the_bits_of_a_fresh_one(name, dtype):
    decoder = decoder_of(saved(name), dtype=dtype)
    decoder._cache._chunk = 8
    fresh, _ = read(decoder, IDS, chunk=8)
    read(decoder, IDS[:16], chunk=8)
    decoder.forward([7], 16)
    again, start = read(decoder, IDS, chunk=8, repeatable=True)
    assert start % 8 == 0
    assert again.tobytes() == fresh.tobytes()


def test_a_read_away_from_the_end_of_the_cache_is_refused():
    decoder = decoder_of(saved("llama"))
    decoder.prefill(IDS[:4], 0)
    with pytest.raises(ValueError, match="position 9, but the cache ends at 4"):
        decoder.forward([5], 9)


@pytest.mark.parametrize("stranger", [tiny_checkpoints.VOCABULARY, -1])
def test_an_id_without_a_row_is_refused(stranger):
    with pytest.raises(ValueError, match="rows for 128 ids"):
        decoder_of(saved("llama")).forward([5, stranger], 0)


# The next token, laid out ahead


@pytest.mark.parametrize("name", list(tiny_checkpoints.ARCHITECTURES))
def test_what_was_laid_out_for_a_token_that_never_comes_leaves_no_trace(name):
    """Every way on after a decoded token, against a decoder that has read the same ids in one forward."""
    decoder, fresh = decoder_of(saved(name)), decoder_of(saved(name))
    ways_on = {
        "another prompt": [*IDS[:9], 5, 6],
        "a longer prompt": [*IDS, 7, 8, 9],
        "the same prompt": IDS,
        "a decoded token": [*IDS, 7, 11],
    }
    for words, other in ways_on.items():
        read(decoder, IDS)
        decoder.forward([7], len(IDS))
        assert decoder._next._waiting is not None
        fresh.clear_kv_cache()
        expected = fresh.forward_all(other, 0)[-1]
        np.testing.assert_allclose(read(decoder, other)[0], expected, atol=1e-4, err_msg=words)
        decoder.clear_kv_cache()


def test_a_step_that_was_laid_out_gives_the_bits_of_one_that_was_not():
    ahead, plain = decoder_of(saved("llama")), decoder_of(saved("llama"))
    plain._lay_out_next = lambda: None
    for n, token_id in enumerate(IDS):
        assert ahead.forward([token_id], n).tobytes() == plain.forward([token_id], n).tobytes()
    assert plain._next._waiting is None


def test_a_graph_that_cannot_be_built_is_told_at_its_own_token_only():
    decoder = decoder_of(saved("llama"))
    last = decoder._model.layers[-1]
    mlp, calls = last.mlp, []

    def fail_at_the_third(x):
        calls.append(1)
        if len(calls) >= 3:
            raise RuntimeError("no kernel for this")
        return mlp(x)

    last.mlp = fail_at_the_third
    decoder.forward([5], 0)
    decoder.forward([6], 1)
    with pytest.raises(RuntimeError, match="no kernel"):
        decoder.forward([7], 2)


# In an engine: another thread does all of it


@pytest.fixture
def engine():
    checkpoint = inspect_checkpoint(saved("llama"))
    with Engine(lambda: MlxDecoder.load(checkpoint)) as engine:
        yield engine


def test_an_engine_answers_as_a_greedy_loop_over_the_model_of_transformers(engine):
    result = engine.generate("!#%", temperature=0, max_tokens=12, ignore_eos=True)
    ids = list(result.trace.prompt_ids)
    for step in result.trace:
        row = torch_reference("llama", ids)[-1]
        assert step.token_id == row.argmax()
        assert step.logprob == pytest.approx(
            row.max() - np.logaddexp.reduce(row.astype(np.float64)), abs=1e-4
        )
        ids.append(step.token_id)


def test_a_session_is_paused_stepped_and_stopped(engine):
    session = engine.start("!#%", temperature=0, max_tokens=100, ignore_eos=True, paused=True)
    session.step()
    wait_until(lambda: len(session.steps) == 1)
    time.sleep(0.05)
    assert len(session.steps) == 1
    session.resume()
    wait_until(lambda: len(session.steps) > 3)
    session.stop()
    assert session.result().stop_reason == "stopped"
    assert 3 < len(session.steps) < 100


def wait_until(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.002)


def test_many_threads_may_ask_one_engine(engine):
    texts = []
    for _ in range(3):
        thread = threading.Thread(
            target=lambda: texts.append(engine.generate("!", seed=1, max_tokens=5, ignore_eos=True).text)
        )
        thread.start()
        thread.join()
    assert len(set(texts)) == 1
    assert len(texts) == 3


def test_an_exception_inside_the_models_forward_is_reported_and_the_next_call_works(engine):
    broken = engine.decoder._model.layers[2]
    mlp, calls = broken.mlp, []

    def fail(x):
        calls.append(1)
        if len(calls) > 3:
            raise RuntimeError("no kernel for this")
        return mlp(x)

    broken.mlp = fail
    with pytest.raises(ForwardFailed, match="no kernel for this"):
        engine.generate("!", temperature=0, max_tokens=8, ignore_eos=True)
    assert len(engine.generate("!", temperature=0, max_tokens=8, ignore_eos=True).trace) == 8


def big():
    """Some 80 MB of weights, and how many bytes they are."""
    checkpoint = inspect_checkpoint(
        saved("llama", hidden_size=512, intermediate_size=2048, head_dim=128, vocab_size=1024)
    )
    return checkpoint, checkpoint.weight_bytes


def test_closing_gives_the_memory_back():
    checkpoint, size = big()
    gc.collect()
    before = mx.get_active_memory()
    engine = Engine(lambda: MlxDecoder.load(checkpoint))
    engine.generate("!", max_tokens=4, ignore_eos=True)
    assert mx.get_active_memory() - before > 0.9 * size
    engine.close()
    assert mx.get_active_memory() - before < 0.02 * size
    assert mx.get_cache_memory() < 1000


def test_an_engine_that_nobody_holds_gives_the_memory_back():
    checkpoint, size = big()
    gc.collect()
    before = mx.get_active_memory()
    engine = Engine(lambda: MlxDecoder.load(checkpoint))
    engine.generate("!", max_tokens=4, ignore_eos=True)
    assert mx.get_active_memory() - before > 0.9 * size
    del engine
    gc.collect()
    wait_until(lambda: mx.get_active_memory() - before < 0.02 * size)
    assert mx.get_cache_memory() < 1000


def test_a_closed_decoder_says_so():
    decoder = decoder_of(saved("llama"))
    decoder.close()
    with pytest.raises(EngineClosed, match="was closed"):
        decoder.forward([5], 0)


@pytest.mark.parametrize("last", ["engine.close()", "del engine", "pass"])
def test_python_ends_cleanly_whatever_became_of_the_engine(last):
    """A thread that ends while Python ends aborts the process: MLX asks for the interpreter once more."""
    script = f"""
from cartoolkit.engine import Engine
from cartoolkit.engine.decoders.mlx_decoder import MlxDecoder
from cartoolkit.models import inspect_checkpoint

checkpoint = inspect_checkpoint({str(saved("llama"))!r})
engine = Engine(lambda: MlxDecoder.load(checkpoint))
engine.generate("!", max_tokens=3, ignore_eos=True)
{last}
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
