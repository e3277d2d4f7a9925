"""What goes wrong with GGUF files, memory and logs: one clear error, silence, and everything given back."""

import contextlib
import ctypes
import gc
import logging
import re
import sys
import threading
import time
import weakref

import gguf
import llama_cpp
import psutil
import pytest
import tiny_gguf

from cartoolkit.engine import Engine, load
from cartoolkit.engine.decoders import llama_cpp_memory, llama_cpp_model
from cartoolkit.engine.decoders.llama_cpp_decoder import LlamaCppDecoder
from cartoolkit.engine.tiny_gguf import tiny_gguf as model_without_tokenizer
from cartoolkit.errors import (
    CartoolkitError,
    InvalidCheckpoint,
    InvalidRequest,
    ModelNotFound,
    NotEnoughMemory,
)
from cartoolkit.models import inspect_checkpoint, resolve
from cartoolkit.models.llama_cpp_log import ERROR, LogLine


@pytest.fixture(scope="module")
def tiny_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    tiny_gguf.write("llama", path)
    return path


def works(path):
    with contextlib.closing(LlamaCppDecoder.load(inspect_checkpoint(path))) as decoder:
        return decoder.forward([5, 6], 0).shape == (128,)


# Files


def damaged(tiny_file, path, damage):
    data = tiny_file.read_bytes()
    path.write_bytes(damage(data))
    return path


DAMAGES = {
    "empty": lambda data: b"",
    "garbage": lambda data: b"no model at all " * 400,
    "a header that ends early": lambda data: data[:700],
    "weights that end early": lambda data: data[: len(data) - 20_000],
    "another architecture": lambda data: data.replace(
        b"\x05" + bytes(7) + b"llama", b"\x05" + bytes(7) + b"loomy", 1
    ),
    "a tensor that is missing": lambda data: data.replace(b"blk.2.attn_q.weight", b"blk.2.attn_x.weight", 1),
}
SAID = {
    "empty": "failed to read magic",
    "garbage": "invalid magic characters",
    "a header that ends early": "failed to read key-value pairs",
    "weights that end early": "not within the file bounds",
    "another architecture": "unknown model architecture: 'loomy'",
    "a tensor that is missing": "'blk.2.attn_q.weight' not found",
}


@pytest.mark.parametrize("fault", DAMAGES)
def test_a_damaged_file_is_one_clear_error_and_the_next_load_works(tiny_file, tmp_path, capfd, fault):
    path = damaged(tiny_file, tmp_path / "damaged.gguf", DAMAGES[fault])
    with pytest.raises(InvalidCheckpoint):
        load(path, engine="gguf", quiet=True)
    # Past the toolkit's own look at the header, llama.cpp says what it found.
    with pytest.raises(
        InvalidCheckpoint, match=f"damaged.gguf could not be opened by llama.cpp: .*{SAID[fault]}"
    ):
        LlamaCppDecoder(path)
    assert capfd.readouterr() == ("", "")
    assert works(tiny_file)


def test_what_is_no_file_is_said_so(tiny_file, tmp_path, capfd):
    with pytest.raises(ModelNotFound, match=re.escape(f"There is no file {tmp_path / 'none.gguf'}")):
        load(tmp_path / "none.gguf", engine="gguf", quiet=True)
    with pytest.raises(InvalidCheckpoint, match="No such file or directory"):
        LlamaCppDecoder(tmp_path / "none.gguf")
    for call in (lambda: load(tmp_path, engine="gguf", quiet=True), lambda: LlamaCppDecoder(tmp_path)):
        with pytest.raises(InvalidCheckpoint):
            call()
    assert capfd.readouterr() == ("", "")
    assert works(tiny_file)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("block_count", 5),
        ("embedding_length", 32),
        ("attention.head_count", 3),
        ("attention.head_count", 0),
        ("attention.head_count_kv", 0),
        ("feed_forward_length", 95),
        ("rope.dimension_count", 12),
    ],
)
def test_a_header_that_does_not_fit_its_tensors_is_refused(tmp_path, capfd, tiny_file, key, value):
    path = tmp_path / "wrong.gguf"
    tiny_gguf.write("llama", path, **{key: value})
    with pytest.raises(InvalidCheckpoint, match=r"could not be opened by llama\.cpp: "):
        LlamaCppDecoder(path)
    assert capfd.readouterr() == ("", "")
    assert works(tiny_file)


def test_a_model_that_does_not_continue_text_is_refused(tmp_path, capfd):
    """An architecture for embeddings keeps no cache, and llama.cpp gives no logits for it."""
    path = tmp_path / "encoder.gguf"
    tiny_gguf.write_encoder(path)
    with pytest.raises(InvalidCheckpoint, match="a model that continues text is needed"):
        LlamaCppDecoder(path)
    assert capfd.readouterr() == ("", "")


def test_a_model_without_a_tokenizer_is_refused_instead_of_ending_the_process(tmp_path, capfd):
    path = tmp_path / "no_vocab.gguf"
    path.write_bytes(model_without_tokenizer())
    with pytest.raises(InvalidCheckpoint, match="holds no tokenizer"):
        LlamaCppDecoder(path)
    assert capfd.readouterr() == ("", "")


def test_a_path_of_any_letters_is_opened(tiny_file, tmp_path):
    path = tmp_path / "módel 模型 🌙" / "ein Modell.gguf"
    path.parent.mkdir()
    path.write_bytes(tiny_file.read_bytes())
    assert works(path)


# Context lengths


@pytest.mark.parametrize("wanted", [0, -1, 129, 10**9, True, False, 64.0, "64"])
def test_a_context_length_that_the_model_was_not_trained_for_is_refused(tiny_file, capfd, wanted):
    with pytest.raises(
        InvalidRequest, match=re.escape(f"from 1 to 128, its training length; got {wanted!r}")
    ):
        load(tiny_file, engine="gguf", context_length=wanted, quiet=True)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["llama", "qwen3", "gemma3", "lfm2"])
def test_the_size_of_the_cache_is_known_before_it_is_allocated(tmp_path, name):
    """A float16 key and value for each head, its width and each layer; at least that for a hybrid."""
    config = tiny_gguf.write(name, tmp_path / "tiny.gguf").config
    decoder = LlamaCppDecoder(tmp_path / "tiny.gguf")
    one_layer = 2 * 2 * config.num_key_value_heads * config.head_dim
    layers = [
        kind for kind in getattr(config, "layer_types", None) or ["attention"] * 4 if "attention" in kind
    ]
    told = decoder._opened.cache_bytes_per_token
    assert told >= one_layer * len(layers) if name == "lfm2" else told == one_layer * len(layers)


def test_a_cache_that_does_not_fit_is_told_with_its_size(tiny_file, monkeypatch):
    monkeypatch.setattr(llama_cpp_model, "free_memory", lambda: 50_000)
    opened = []
    original = llama_cpp.llama_model_free
    monkeypatch.setattr(llama_cpp, "llama_model_free", lambda model: opened.append(original(model)))
    with pytest.raises(NotEnoughMemory, match=r"the cache for 128 tokens needs 0 MB of memory"):
        LlamaCppDecoder(tiny_file, context_length=128)
    assert len(opened) == 1  # at once: the error's traceback holds the decoder
    assert LlamaCppDecoder(tiny_file, context_length=90).info.context_length == 90


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps to a limit of address space")
def test_a_context_that_llama_cpp_cannot_allocate_is_told_with_its_size(tmp_path, monkeypatch, capfd):
    import resource

    tiny_gguf.write("llama", tmp_path / "tiny.gguf", context_length=10**8)
    monkeypatch.setattr(llama_cpp_model, "free_memory", lambda: 10**15)
    before = resource.getrlimit(resource.RLIMIT_AS)
    taken = psutil.Process().memory_info().vms
    try:
        resource.setrlimit(resource.RLIMIT_AS, (taken + 3 * 10**9, before[1]))
        with pytest.raises(
            NotEnoughMemory, match=r"20,000,000 tokens, with 10,240 MB of cache: insuff"
        ) as caught:
            LlamaCppDecoder(tmp_path / "tiny.gguf", context_length=20_000_000)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    assert "context_length" in caught.value.hint
    assert capfd.readouterr() == ("", "")


# As llama.cpp says it with CUDA, and with a backend that gives no reason of its own.
NO_ROOM = [
    "ggml_cuda_alloc: allocating 512.00 MiB on device 0: cudaMalloc failed: out of memory",
    "llama_model_load: error loading model: unable to allocate Vulkan0 buffer",
]


@pytest.mark.parametrize("said", NO_ROOM)
def test_weights_that_do_not_fit_on_a_card_are_no_damaged_file(tiny_file, monkeypatch, said):
    @contextlib.contextmanager
    def log_captured():
        yield [LogLine(2, "some backend is out of memory often"), LogLine(ERROR, said)]

    monkeypatch.setattr(llama_cpp_model, "log_captured", log_captured)
    monkeypatch.setattr(llama_cpp_model, "free_on_gpu", lambda: 300_000_000)
    monkeypatch.setattr(llama_cpp, "llama_model_load_from_file", lambda *_: None)
    reason = said.split(": ", 1)[1].removeprefix("error loading model: ")
    with pytest.raises(NotEnoughMemory, match=f"{reason}; the graphics card has 300 MB free"):
        LlamaCppDecoder(tiny_file, on_gpu=True)


def test_ggml_says_what_a_device_has_free():
    llama_cpp.llama_backend_init()
    free = llama_cpp_memory._free_on({0})  # the processor, a device in every build
    assert free is not None
    assert 10**8 < free <= psutil.virtual_memory().total


def test_on_a_card_the_card_s_memory_counts(tiny_file, monkeypatch):
    monkeypatch.setattr(llama_cpp_model, "free_memory", lambda: 0)
    monkeypatch.setattr(llama_cpp_model, "free_on_gpu", lambda: 50_000)
    with pytest.raises(NotEnoughMemory, match="the graphics card has 0 MB free"):
        LlamaCppDecoder(tiny_file, context_length=128, on_gpu=True)
    monkeypatch.setattr(llama_cpp_model, "free_on_gpu", lambda: None)
    assert LlamaCppDecoder(tiny_file, on_gpu=True).info.context_length == tiny_gguf.CONTEXT


@pytest.mark.model
def test_the_usual_context_takes_a_quarter_of_the_free_memory(monkeypatch):
    checkpoint = resolve(None, formats=("gguf",))
    per_token = 2 * 2 * 3 * 64 * 30  # SmolLM2-135M: 3 key/value heads of 64, 30 layers
    for free, expected in [(per_token * 4 * 1000, 1000), (per_token * 4, 512), (10**12, 8192)]:
        monkeypatch.setattr(llama_cpp_model, "free_memory", lambda free=free: free)
        with contextlib.closing(LlamaCppDecoder(checkpoint.path)) as decoder:
            assert decoder.info.context_length == expected


# Memory


def resident():
    gc.collect()
    return psutil.Process().memory_info().rss / 1e6


@pytest.fixture
def freed(monkeypatch):
    """How often contexts and models were freed."""
    counts = {"llama_free": 0, "llama_model_free": 0, "llama_batch_free": 0}
    for name in counts:
        original = getattr(llama_cpp, name)

        def free(pointer, name=name, original=original):
            counts[name] += 1
            original(pointer)

        monkeypatch.setattr(llama_cpp, name, free)
    return counts


def test_a_decoder_that_nobody_holds_is_freed(tiny_file, freed):
    decoder = LlamaCppDecoder(tiny_file)
    decoder.forward([5], 0)
    seen = weakref.ref(decoder)
    del decoder
    gc.collect()
    assert seen() is None
    assert set(freed.values()) == {1}


def test_closing_from_many_threads_frees_once(tiny_file, freed):
    decoder = LlamaCppDecoder(tiny_file)
    threads = [threading.Thread(target=decoder.close) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    decoder.close()
    del decoder
    gc.collect()
    assert set(freed.values()) == {1}


def test_an_engine_gives_its_model_back(tiny_file, freed):
    with Engine(lambda: LlamaCppDecoder(tiny_file)) as engine:
        result = engine.generate("the", max_tokens=3, ignore_eos=True)
    assert set(freed.values()) == {1}
    assert len(result.trace) == 3
    engine = Engine(lambda: LlamaCppDecoder(tiny_file))
    result = engine.generate("the", max_tokens=3, ignore_eos=True)
    del engine
    gc.collect()
    deadline = time.monotonic() + 5
    while set(freed.values()) != {2}:
        # The worker lets go of its last job a moment after the result is there.
        assert time.monotonic() < deadline, f"a result must not keep the model: {freed}"
        time.sleep(0.01)
    assert len(result.trace) == 3


def test_a_load_that_fails_frees_what_it_had(tiny_file, freed):
    with pytest.raises(InvalidRequest) as caught:
        LlamaCppDecoder(tiny_file, context_length=0)
    assert freed["llama_model_free"] == 1
    assert caught.tb is not None  # which holds the frame with the decoder


@pytest.mark.model
def test_twenty_loads_take_no_more_memory_than_one():
    path = resolve(None, formats=("gguf",)).path

    def load_and_close():
        decoder = LlamaCppDecoder(path, context_length=4096)
        decoder.forward(list(range(100, 164)), 0)
        held = resident()
        decoder.close()
        return held

    load_and_close()
    before = resident()
    held = [load_and_close() - before for _ in range(20)]
    # The cache alone is 94 MB, 4096 tokens of 23 kB, and the weights are 92 MB.
    assert min(held) > 90
    assert resident() - before < 40


# The log


def callback_now():
    callback, data = llama_cpp.llama_log_callback(), ctypes.c_void_p()
    llama_cpp.llama_log_get(ctypes.byref(callback), ctypes.byref(data))
    return ctypes.cast(callback, ctypes.c_void_p).value


def test_loads_in_several_threads_leave_the_log_as_it_was(tiny_file, tmp_path, capfd):
    before, errors = callback_now(), []

    def load_some():
        for _ in range(5):
            assert works(tiny_file)
            with contextlib.suppress(CartoolkitError):
                LlamaCppDecoder(tmp_path / "none.gguf")
                errors.append("a missing file was opened")

    threads = [threading.Thread(target=load_some) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert callback_now() == before
    assert capfd.readouterr() == ("", "")


def test_a_log_callback_of_ones_own_is_back_after_a_load(tiny_file):
    heard = []
    usual, data = llama_cpp.llama_log_callback(), ctypes.c_void_p()
    llama_cpp.llama_log_get(ctypes.byref(usual), ctypes.byref(data))
    mine = llama_cpp.llama_log_callback(lambda level, text, _: heard.append(text))
    llama_cpp.llama_log_set(mine, ctypes.c_void_p())
    try:
        assert works(tiny_file)
        heard.clear()
        llama_cpp.llama_model_load_from_file(b"/none.gguf", llama_cpp.llama_model_default_params())
        assert any(b"none.gguf" in text for text in heard)
    finally:
        llama_cpp.llama_log_set(usual, data)


def test_a_verbose_llama_still_prints_after_a_load(tiny_file, capfd):
    logger = logging.getLogger("llama-cpp-python")
    before = logger.level
    try:
        llama_cpp.Llama(str(tiny_file), n_ctx=64, verbose=True).close()
        assert "llama_model_loader" in capfd.readouterr().err
        assert works(tiny_file)
        assert logger.level == logging.DEBUG
        capfd.readouterr()
        llama_cpp.Llama(str(tiny_file), n_ctx=64, verbose=True).close()
        assert "llama_model_loader" in capfd.readouterr().err
    finally:
        logger.setLevel(before)


def test_what_llama_cpp_says_is_in_pythons_log(tiny_file, caplog):
    with caplog.at_level(logging.DEBUG, logger="cartoolkit"):
        assert works(tiny_file)
    architecture = gguf.MODEL_ARCH_NAMES[gguf.MODEL_ARCH.LLAMA]
    assert any("arch" in message and architecture in message for message in caplog.messages)
