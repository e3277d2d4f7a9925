"""Loading into torch: which files may be used, whether they fit, and that memory comes back."""

import gc
import json
import traceback
import weakref

import psutil
import pytest
import torch
from safetensors.torch import load_file
from transformers import LlamaForCausalLM

from cartoolkit.engine.decoders import torch_errors, torch_loading
from cartoolkit.engine.decoders.torch_decoder import TorchDecoder
from cartoolkit.engine.decoders.torch_errors import forward_errors
from cartoolkit.errors import InvalidCheckpoint, InvalidRequest, NotEnoughMemory, OutOfMemory
from cartoolkit.models import Quantization, inspect_checkpoint
from tests.unit.engine.decoders.test_torch_decoder import (
    IDS,
    llama,
    read,
    reference,
    tiny_checkpoint,
    tokenizer,
)

CPU = torch.device("cpu")


def loaded(checkpoint, **options):
    return TorchDecoder.load(checkpoint, **{"device": CPU, "dtype": torch.float32} | options)


def as_pickle(folder, weights=None):
    """The checkpoint in `folder` with its weights as a pickle file."""
    tiny_checkpoint(folder)
    safe = folder / "model.safetensors"
    torch.save(load_file(safe) if weights is None else weights, folder / "pytorch_model.bin")
    safe.unlink()
    return inspect_checkpoint(folder, allow_pickle=True)


def test_sharded_weights_give_the_logits_of_one_file(tmp_path):
    torch.manual_seed(0)
    model = llama().eval()
    model.save_pretrained(tmp_path, max_shard_size="10KB")
    tokenizer().save_pretrained(tmp_path)
    assert len(list(tmp_path.glob("*.safetensors"))) > 3
    logits, _ = read(loaded(inspect_checkpoint(tmp_path)), IDS)
    assert abs(logits - reference(model, IDS)).max() < 1e-5


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_dtype_asked_for_is_the_one_computed_in(tmp_path, dtype):
    decoder = loaded(tiny_checkpoint(tmp_path), dtype=dtype)
    assert decoder._model.dtype == dtype
    assert decoder.info.dtype == str(dtype).removeprefix("torch.")


def test_a_pickle_that_was_allowed_is_loaded(tmp_path):
    torch.manual_seed(0)
    expected = reference(llama().eval(), IDS)
    logits, _ = read(loaded(as_pickle(tmp_path)), IDS)
    assert abs(logits - expected).max() < 1e-5


class Runs:
    """What a hostile pickle does when it is opened."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return (exec, (f"open({str(self.target)!r}, 'w').close()",))


def test_a_pickle_that_was_allowed_can_still_run_nothing(tmp_path):
    trap = tmp_path / "it-ran"
    checkpoint = as_pickle(tmp_path, {"model.norm.weight": Runs(trap)})
    with pytest.raises(InvalidCheckpoint, match="could not be loaded by transformers"):
        loaded(checkpoint)
    assert not trap.exists()


CODE = """
from transformers import LlamaConfig, LlamaForCausalLM

class OwnConfig(LlamaConfig):
    model_type = "own"

class OwnForCausalLM(LlamaForCausalLM):
    config_class = OwnConfig
"""


def test_code_that_comes_with_a_checkpoint_runs_only_where_it_was_allowed(tmp_path, monkeypatch):
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    folder = tmp_path / "own"
    tiny_checkpoint(folder)
    (folder / "own.py").write_text(CODE)
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "model_type": "own",
        "architectures": ["OwnForCausalLM"],
        "auto_map": {"AutoConfig": "own.OwnConfig", "AutoModelForCausalLM": "own.OwnForCausalLM"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(InvalidCheckpoint, match="asks to run code"):
        inspect_checkpoint(folder)
    decoder = loaded(inspect_checkpoint(folder, trust_remote_code=True))
    assert type(decoder._model).__name__ == "OwnForCausalLM"
    torch.manual_seed(0)
    assert abs(read(decoder, IDS)[0] - reference(llama().eval(), IDS)).max() < 1e-5


def test_weights_that_do_not_fit_are_refused_before_they_are_read(tmp_path, monkeypatch):
    checkpoint = tiny_checkpoint(tmp_path)
    monkeypatch.setattr(torch_loading, "free_memory", lambda: 1000)
    monkeypatch.setattr(torch_loading, "_model", lambda *_: pytest.fail("it was read"))
    with pytest.raises(NotEnoughMemory, match="needs 0 MB of memory, and this machine has 0 MB free"):
        loaded(checkpoint)


FAULTS = {
    "CUDA out of memory. Tried to allocate 20.00 MiB.": (
        NotEnoughMemory,
        "does not fit into the memory of cpu",
    ),
    "\"addmm_impl_cpu_\" not implemented for 'Half'": (InvalidCheckpoint, "not implemented for 'Half'"),
}


@pytest.mark.parametrize("said", FAULTS)
@pytest.mark.parametrize("where", ["to", "forward"])
def test_a_fault_while_loading_is_told_and_its_error_does_not_hold_the_model(
    tmp_path, monkeypatch, where, said
):
    held = []

    def fail(self, *_, **__):
        held.append(weakref.ref(self))
        raise RuntimeError(said)

    checkpoint = tiny_checkpoint(tmp_path)
    monkeypatch.setattr(torch_loading, "_model", lambda *_: Failing.from_pretrained(tmp_path))
    monkeypatch.setattr(Failing, where, fail, raising=False)
    kind, message = FAULTS[said]
    with pytest.raises(kind, match=message) as caught:
        loaded(checkpoint)
    gc.collect()
    assert held
    assert [ref() for ref in held] == [None] * len(held)
    assert "Traceback" in "".join(traceback.format_exception(caught.value))  # which is still there


class Failing(LlamaForCausalLM):
    """A model whose methods a test can replace."""


def test_what_is_packed_already_is_not_packed_again(tmp_path, monkeypatch):
    import dataclasses

    packed = dataclasses.replace(
        tiny_checkpoint(tmp_path), quantization=Quantization.from_mlx_config(4, 64, "affine")
    )
    monkeypatch.setattr(torch_loading, "admit", lambda *_: None)
    with pytest.raises(InvalidRequest, match="is packed already"):
        loaded(packed, quantize="int8")


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (
            torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has"),
            "21,475 MB more",
        ),
        (
            RuntimeError("MPS backend out of memory (MPS allocated: 8 GB). Tried to allocate 256.00 MB"),
            "256 MB",
        ),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4000000 bytes"),
            "4 MB",
        ),
        (MemoryError(), "MB are free"),
    ],
)
def test_running_out_of_memory_is_told_with_the_numbers(monkeypatch, said, wanted):
    monkeypatch.setattr(torch_errors, "free_memory", lambda: 7_000_000)
    with (
        pytest.raises(OutOfMemory, match=f"at 1,200 tokens: .*{wanted}") as caught,
        forward_errors(CPU, 1200),
    ):
        raise said
    assert "7 MB are free" in str(caught.value)


def test_a_real_allocation_that_fails_is_recognised():
    with pytest.raises(OutOfMemory, match=r"4,000,000,000 MB more were needed"), forward_errors(CPU, 1):
        torch.empty(10**15, dtype=torch.float32)


def test_other_errors_of_a_forward_stay_what_they_are():
    with pytest.raises(RuntimeError, match="shapes"), forward_errors(CPU, 1):
        raise RuntimeError("shapes do not match")


@pytest.mark.parametrize("let_go", ["close", "collect"])
def test_a_decoder_that_is_closed_or_collected_gives_its_memory_back(let_go):
    weights = torch.zeros(40_000_000)
    model = llama().eval()
    model.register_buffer("large", weights)
    decoder = TorchDecoder(model, tokenizer())
    read(decoder, IDS)
    held = [weakref.ref(model), weakref.ref(decoder._cache.tensors)]
    before = psutil.Process().memory_info().rss
    weights.fill_(1)
    del model, weights
    if let_go == "close":
        decoder.close()
    else:
        del decoder
    gc.collect()
    assert [ref() for ref in held] == [None, None]
    # The buffer's 160 MB were touched after `before` was taken, and are gone again.
    assert psutil.Process().memory_info().rss < before + 40_000_000
