"""The llama.cpp decoder: the library's own logits, whatever was read before; transformers' on tiny models."""

import contextlib
import threading

import llama_cpp
import numpy as np
import pytest
import tiny_gguf
import torch

from cartoolkit.engine import Engine, load
from cartoolkit.engine.decoders.llama_cpp_decoder import LlamaCppDecoder
from cartoolkit.errors import EngineClosed, ForwardFailed, OutOfMemory, PromptTooLong
from cartoolkit.models import inspect_checkpoint, resolve

IDS = [int(i) for i in np.random.default_rng(0).integers(4, 120, 100)]
FAMILIES = list(tiny_gguf.BUILDERS)
RECURRENT = {"mamba", "lfm2"}
# Logits of these models have a standard deviation of 1 to 2. The cache holds float16, and llama.cpp's
# attention sums in float16 where fewer than 64 tokens are read at once.
FLOAT16_CACHE = 0.02


@pytest.fixture(scope="module")
def tiny_files(tmp_path_factory):
    """Family name to GGUF file and the model of transformers with the same weights."""
    folder = tmp_path_factory.mktemp("gguf")
    return {
        name: (folder / f"{name}.gguf", tiny_gguf.write(name, folder / f"{name}.gguf")) for name in FAMILIES
    }


@pytest.fixture
def tiny(tiny_files):
    """A decoder of the tiny Llama."""
    with contextlib.closing(open_tiny(tiny_files, "llama")) as decoder:
        yield decoder


def open_tiny(tiny_files, name, **settings):
    return LlamaCppDecoder.load(inspect_checkpoint(tiny_files[name][0]), **settings)


def reference(tiny_files, name, ids):
    """Logits after each id by transformers, float32 [len(ids), vocab]."""
    with torch.inference_mode():
        return tiny_files[name][1](input_ids=torch.tensor([ids]), use_cache=False).logits[0].numpy()


def read(decoder, ids, *, repeatable=False):
    """Logits after the last id, the way the loop reads a prompt; also how many ids were in the cache."""
    start = done = decoder.begin_prompt(ids, repeatable=repeatable)
    while len(ids) - done > decoder.prefill_chunk:
        decoder.prefill(ids[done : done + decoder.prefill_chunk], done)
        done += decoder.prefill_chunk
    return decoder.forward(ids[done:], done).copy(), start


def read_afresh(decoder, ids):
    decoder.clear_kv_cache()
    return read(decoder, ids)[0]


# Tiny models against transformers


@pytest.mark.parametrize("name", FAMILIES)
def test_every_token_has_transformers_logits(tiny_files, name):
    decoder = open_tiny(tiny_files, name)
    expected = reference(tiny_files, name, IDS)
    assert expected.std(axis=0).mean() > 0.5  # rows that hardly differ could not tell a wrong order
    np.testing.assert_allclose(decoder.forward_all(IDS, 0), expected, atol=FLOAT16_CACHE, rtol=0)
    np.testing.assert_allclose(read_afresh(decoder, IDS), expected[-1], atol=FLOAT16_CACHE, rtol=0)


@pytest.mark.parametrize("name", FAMILIES)
def test_twenty_decoded_tokens_have_transformers_logits(tiny_files, name):
    decoder = open_tiny(tiny_files, name)
    ids, logits = IDS[:30], read_afresh(decoder, IDS[:30])
    for _ in range(20):
        expected = reference(tiny_files, name, ids)[-1]
        np.testing.assert_allclose(logits, expected, atol=FLOAT16_CACHE, rtol=0)
        ids = [*ids, int(expected.argmax())]
        logits = decoder.forward(ids[-1:], len(ids) - 1).copy()


# The cache


@pytest.mark.parametrize("name", FAMILIES)
def test_crop_equals_fresh_read(tiny_files, name):
    decoder, base = open_tiny(tiny_files, name), IDS[:40]
    for shared in range(40):
        other = [*base[:shared], *reversed(base[shared:])]
        read_afresh(decoder, base)
        logits, kept = read(decoder, other)
        assert kept in ({0} if name in RECURRENT else {shared, 39}), "the last token is always read"
        fresh = read_afresh(decoder, other)
        np.testing.assert_allclose(logits, fresh, atol=FLOAT16_CACHE, rtol=0, err_msg=f"shared {shared}")


@pytest.mark.parametrize("name", FAMILIES)
def test_a_prompt_that_goes_on_is_not_read_again(tiny_files, name):
    decoder = open_tiny(tiny_files, name)
    read_afresh(decoder, IDS[:20])
    logits, kept = read(decoder, IDS[:40])
    assert kept == 20
    np.testing.assert_allclose(logits, read_afresh(decoder, IDS[:40]), atol=FLOAT16_CACHE, rtol=0)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_repeatable_read_gives_the_bits_of_a_fresh_one(tiny_files, name):
    decoder = open_tiny(tiny_files, name)
    fresh = read_afresh(decoder, IDS)
    for token_id in (7, 8, 9):
        decoder.forward([token_id], len(IDS) + token_id - 7)
    logits, kept = read(decoder, IDS, repeatable=True)
    assert kept == (0 if name in RECURRENT else 64)
    np.testing.assert_array_equal(logits, fresh)
    # Read token by token, nothing of it is what whole chunks would have given.
    decoder.clear_kv_cache()
    for n, token_id in enumerate(IDS):
        decoder.forward([token_id], n)
    logits, kept = read(decoder, IDS, repeatable=True)
    assert kept == 0
    np.testing.assert_array_equal(logits, fresh)


def test_scoring_a_prompt_leaves_the_cache_of_a_plain_read(tiny):
    fresh = read_afresh(tiny, IDS)
    tiny.clear_kv_cache()
    tiny.forward_all(IDS[:64], 0)
    logits, kept = read(tiny, IDS, repeatable=True)
    assert kept == 64
    np.testing.assert_array_equal(logits, fresh)


def test_a_forward_away_from_the_end_of_the_cache_is_refused(tiny):
    tiny.forward(IDS[:4], 0)
    for call in (tiny.forward, tiny.forward_all, tiny.prefill):
        with pytest.raises(ValueError, match="position 9, but the cache ends at 4"):
            call([5], 9)


def test_nothing_to_read_is_refused_where_logits_are_asked_for(tiny):
    with pytest.raises(ValueError, match="none to read"):
        tiny.forward([], 0)
    assert tiny.forward_all([], 0).shape == (0, 128)
    tiny.prefill([], 0)
    assert tiny.begin_prompt([]) == 0


# Failures


def fail_from(monkeypatch, call, code):
    """From its `call`-th call on, llama_decode does nothing and returns `code`."""
    original, calls = llama_cpp.llama_decode, []

    def decode(context, batch):
        calls.append(threading.current_thread().name)
        return code if len(calls) >= call else original(context, batch)

    monkeypatch.setattr(llama_cpp, "llama_decode", decode)
    return calls


@pytest.mark.parametrize("name", ["llama", "mamba"])
def test_a_read_that_fails_halfway_leaves_no_wrong_cache(tiny_files, name, monkeypatch):
    decoder = open_tiny(tiny_files, name)
    decoder._opened.batch_size = 16
    fresh = read_afresh(decoder, IDS)
    read_afresh(decoder, IDS[:20])
    with monkeypatch.context() as patch:
        fail_from(patch, 3, 1)
        with pytest.raises(RuntimeError, match=r"code 1: there is no room for these tokens"):
            decoder.prefill(IDS[20:64], 20)
    logits, kept = read(decoder, IDS)
    assert kept == (0 if name == "mamba" else 20)
    np.testing.assert_allclose(logits, fresh, atol=FLOAT16_CACHE, rtol=0)


def test_a_token_that_the_model_does_not_have_is_refused_and_the_cache_stays(tiny, capfd):
    read_afresh(tiny, IDS[:20])
    for token_id in (128, -1):
        with pytest.raises(RuntimeError, match="not ones that this model has"):
            tiny.forward([token_id], 20)
    assert read(tiny, IDS[:30])[1] == 20
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("code", "error"), [(-2, OutOfMemory), (-3, ForwardFailed), (1, ForwardFailed)])
def test_a_forward_that_fails_costs_the_decoder_and_the_next_call_works(tiny_files, monkeypatch, code, error):
    with Engine(lambda: open_tiny(tiny_files, "llama")) as engine:
        whole = engine.generate("the", temperature=0, max_tokens=6, ignore_eos=True)
        with monkeypatch.context() as patch:
            fail_from(patch, 4, code)
            with pytest.raises(error) as caught:
                engine.generate("the", temperature=0, max_tokens=6, ignore_eos=True)
        assert type(caught.value) is error
        assert len(caught.value.trace) == 3
        again = engine.generate("the", temperature=0, max_tokens=6, ignore_eos=True)
        assert again.trace.columns["token_id"].tolist() == whole.trace.columns["token_id"].tolist()


def test_a_closed_decoder_says_so(tiny):
    tiny.close()
    tiny.close()
    for call in (
        lambda: tiny.forward([5], 0),
        lambda: tiny.forward_all([5], 0),
        lambda: tiny.prefill([5], 0),
        lambda: tiny.begin_prompt([5]),
        tiny.clear_kv_cache,
        lambda: tiny.encode("a"),
        lambda: tiny.decode([5]),
        lambda: tiny.token_bytes(5),
        lambda: tiny.special_ids,
        lambda: tiny.chat_template,
    ):
        with pytest.raises(EngineClosed, match="llama was closed"):
            call()


def test_the_context_is_as_long_as_it_was_asked_for(tiny_files):
    """llama.cpp rounds 100 up to 256, and would end the process on a read beyond what it has."""
    decoder = open_tiny(tiny_files, "llama", context_length=60)
    assert decoder.info.context_length == 60
    for call in (decoder.forward, decoder.forward_all, decoder.prefill):
        with pytest.raises(PromptTooLong, match=r"61 tokens at position 0 do not fit into the context of 60"):
            call(IDS[:61], 0)
    expected = reference(tiny_files, "llama", IDS[:60])[-1]
    np.testing.assert_allclose(decoder.forward(IDS[:60], 0), expected, atol=FLOAT16_CACHE, rtol=0)
    with pytest.raises(PromptTooLong, match="1 tokens at position 60"):
        decoder.forward([5], 60)


# Threads


def test_an_engine_computes_on_its_own_thread_only(tiny_files, monkeypatch):
    with Engine(lambda: open_tiny(tiny_files, "llama")) as engine:
        threads = fail_from(monkeypatch, 10_000, 0)
        engine.generate("the an", temperature=0, max_tokens=5, ignore_eos=True)
        list(engine.stream("the ", temperature=0, max_tokens=5, ignore_eos=True))
        assert len(threads) == 10
        assert set(threads) == {"cartoolkit-engine"}


def test_stop_in_a_long_prompt_ends_it_before_the_next_chunk(tiny_files):
    with Engine(lambda: open_tiny(tiny_files, "llama")) as engine:
        decoder, done = engine.decoder, []
        decoder.prefill_chunk = 8
        original = decoder.prefill

        def prefill(ids, pos):
            original(ids, pos)
            done.append(len(ids))
            if len(done) == 2:
                engine.session.stop()

        decoder.prefill = prefill
        result = engine.start("the " * 20).result()
        assert result.stop_reason == "stopped"
        assert done == [8, 8]
        assert len(result.trace) == 0


def test_pause_and_step_decode_one_token_at_a_time(tiny_files):
    with Engine(lambda: open_tiny(tiny_files, "llama")) as engine:
        session = engine.start("the", paused=True, temperature=0, max_tokens=5, ignore_eos=True)
        session.step(2)
        tick = threading.Event()
        while session.state != "paused" or len(session.steps) < 2:
            assert not session.done
            tick.wait(0.01)
        assert len(session.steps) == 2
        session.resume()
        assert len(session.result().trace) == 5


# The default model against the library's own high-level class


PROMPTS = [
    "The capital of France is",
    "def fibonacci(n):\n    ",
    "Once upon a time, in a small village by the sea,",
    "1, 2, 4, 8, 16,",
    "Das Wetter heute ist",
    "🌙 und ☀️:",
]
PROSE = (
    "In the beginning the river was only a thread between two stones, and nobody thought of naming it. "
    "It ran where the ground let it run, past the roots of alders, under a fallen beech, around the rock "
    "that children would later call the old man. After rain it was loud; in summer one had to look for it. "
)


@pytest.fixture(scope="module")
def gguf_engine():
    with load(engine="gguf", context_length=2048, fresh=True, quiet=True) as engine:
        yield engine


@pytest.fixture
def decoder(gguf_engine):
    gguf_engine.decoder.clear_kv_cache()
    return gguf_engine.decoder


@pytest.fixture(scope="module")
def make_library(gguf_engine):
    """The library's own class on the same file; keywords are its own."""
    path = resolve(None, formats=("gguf",)).path
    threads = llama_cpp.llama_n_threads(gguf_engine.decoder._opened.context)
    with contextlib.ExitStack() as stack:

        def make(**settings):
            library = llama_cpp.Llama(
                str(path), n_ctx=2048, n_threads=threads, n_threads_batch=threads, flash_attn=True,
                verbose=False, **settings,
            )  # fmt: skip
            return stack.enter_context(contextlib.closing(library))

        yield make


def library_row(library, ids):
    """Logits after the last of `ids` as the library leaves them, float32 [vocab]."""
    library.reset()
    library.eval(ids)
    return np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(library.ctx, -1), (library.n_vocab(),)).copy()


@pytest.mark.model
def test_raw_logits_are_the_librarys_bit_for_bit(decoder, make_library):
    library = make_library(n_batch=512)
    texts = [*PROMPTS, PROSE, PROSE * 4, PROSE * 10]
    lengths = [len(decoder.encode(text)) for text in texts]
    assert max(lengths) > 512 > lengths[-2] > decoder.prefill_chunk
    for text in texts:
        ids = decoder.encode(text)
        decoder.clear_kv_cache()
        np.testing.assert_array_equal(decoder.forward(ids, 0), library_row(library, ids))


@pytest.mark.model
def test_all_rows_are_the_librarys_bit_for_bit(decoder, make_library):
    library = make_library(n_batch=decoder.prefill_chunk, logits_all=True)
    ids = decoder.encode(PROSE * 2)
    assert len(ids) > 2 * decoder.prefill_chunk
    library.eval(ids)
    np.testing.assert_array_equal(decoder.forward_all(ids, 0), library.scores[: len(ids)])


@pytest.mark.model
def test_greedy_text_is_the_librarys(gguf_engine, make_library):
    library = make_library(n_batch=gguf_engine.decoder.prefill_chunk)
    for prompt in (*PROMPTS, PROSE):
        result = gguf_engine.generate(prompt, chat_template=False, temperature=0, max_tokens=24)
        expected = library.create_completion(result.trace.prompt_ids.tolist(), temperature=0, max_tokens=24)
        assert result.text == expected["choices"][0]["text"]


@pytest.mark.model
def test_crop_of_a_short_prompt_equals_a_fresh_read_bit_for_bit(decoder):
    """Up to 63 tokens, llama.cpp computes quantized weights alike for one token and for many."""
    base = decoder.encode(PROSE)[:40]
    for shared in range(0, 40, 3):
        other = [*base[:shared], *reversed(base[shared:])]
        read_afresh(decoder, base)
        logits, kept = read(decoder, other)
        assert kept == shared
        np.testing.assert_array_equal(logits, read_afresh(decoder, other))


@pytest.mark.model
@pytest.mark.parametrize("shared", [1, 40, 63, 64, 65, 100, 128, 150])
def test_a_shared_prefix_of_any_length_changes_the_distribution_by_rounding_only(decoder, shared):
    """In Q4_1, activations are rounded to 8 bits, which carries a last bit of the attention far."""
    ids = decoder.encode(PROSE * 3)[:160]
    other = [*ids[:shared], *reversed(ids[shared:])]
    fresh = log_softmax(read_afresh(decoder, other))
    read_afresh(decoder, ids)
    for n in range(3):
        decoder.forward([ids[n]], len(ids) + n)
    logits, kept = read(decoder, other)
    assert kept == shared
    divergence = (np.exp(fresh) * (fresh - log_softmax(logits))).sum()
    assert abs(divergence) < 0.02


def log_softmax(row):
    row = row.astype(np.float64) - row.max()
    return row - np.log(np.exp(row).sum())


@pytest.mark.model
def test_the_same_request_gives_the_same_bits_whatever_ran_before(gguf_engine):
    first = gguf_engine.generate(PROSE, seed=3, max_tokens=12).trace
    gguf_engine.generate(PROSE[:200], seed=4, max_tokens=12)
    gguf_engine.generate(PROSE + PROSE[:77], seed=5, max_tokens=3)
    again = gguf_engine.generate(PROSE, seed=3, max_tokens=12).trace
    for name, column in first.columns.items():
        if name != "elapsed":
            assert column.tobytes() == again.columns[name].tobytes(), name
