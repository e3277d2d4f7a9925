"""engine_serves(): the installed library decides, layout and architecture must both pass.

The seed's own cases are here, with its reasons: one regression name and a nonsense name, no inventory.
"""

import importlib
import json
import subprocess
import sys

import pytest
import tiny_model

from cartoolkit.errors import InvalidCheckpoint
from cartoolkit.models import (
    ENGINES,
    Quantization,
    admit,
    checkpoint_served,
    engine_serves,
    engine_status,
    inspect_checkpoint,
)
from cartoolkit.models import engines as engines_module

NONSENSE = "not_a_real_architecture_9f3c"
AFFINE = Quantization.from_mlx_config(4, 64)


def declared(**block):
    return Quantization.from_config({"quantization_config": block})


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("model_type", ["qwen3", "Qwen3", "QWEN3_MOE", "llama", " gemma3_text"])
def test_an_architecture_that_the_library_has_is_served_in_any_case(engine, model_type):
    assert engine_serves(model_type, None, engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", [NONSENSE, "some_architecture_from_next_month", "", "a", "x" * 5000, "\0"])
def test_a_nonsense_architecture_is_refused_by_all(engine, name):
    verdict = engine_serves(name, None, engine)
    assert not verdict
    assert verdict.reason
    assert verdict.hint


@pytest.mark.parametrize("engine", ["torch", "mlx"])
def test_admission_follows_the_library_and_no_list_of_ours(engine):
    assert engine_serves("glm4_moe_lite", None, engine)


def test_admission_is_the_transformers_mapping():
    transformers = importlib.import_module("transformers")
    served = transformers.models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    others = set(transformers.CONFIG_MAPPING) - set(served)
    for name in [*sorted(served)[::20], *sorted(others)[::20]]:
        assert bool(engine_serves(name, None, "torch")) == (name in served), name


@pytest.mark.parametrize("helper", ["base", "cache", "switch_layers", "..utils", "../utils", "llama.Model"])
def test_a_module_of_mlx_lm_that_is_no_model_is_refused(helper):
    assert not engine_serves(helper, None, "mlx")


def test_mlx_lm_renames_some_types():
    utils = importlib.import_module("mlx_lm.utils")
    renamed = [name for name in utils.MODEL_REMAPPING if name.islower()]
    assert "mistral" in renamed
    assert engine_serves("mistral", None, "mlx")


@pytest.mark.parametrize("architecture", ["llama", "qwen3moe", "gemma3", "phi3", "gpt2", "mamba"])
def test_llama_cpp_knows_what_the_gguf_library_writes(architecture):
    gguf = importlib.import_module("gguf")
    assert architecture in gguf.MODEL_ARCH_NAMES.values()
    assert engine_serves(architecture, None, "gguf")


def test_asking_llama_cpp_prints_nothing_and_leaves_its_log_as_it_was(capfd):
    asking = importlib.import_module("cartoolkit.models.llama_cpp_admission")
    asking._knows.cache_clear()
    assert engine_serves("llama", None, "gguf")
    llama_cpp = importlib.import_module("llama_cpp")
    assert capfd.readouterr() == ("", "")
    logger = importlib.import_module("llama_cpp._logger")
    before = logger.logger.level
    logger.set_verbose(True)
    try:
        llama_cpp.llama_model_load_from_file(b"/none.gguf", llama_cpp.llama_model_default_params())
        assert "none.gguf" in capfd.readouterr().err  # the library's own callback is back in place
    finally:
        logger.logger.setLevel(before)


# -- layouts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "quantization",
    [
        Quantization.from_mlx_config(4, 64, None),
        Quantization.from_mlx_config(4, 64, "affine"),
        Quantization.from_mlx_config(None, None, None),
        *(Quantization.from_mlx_config(b, 32, m) for m in ("mxfp4", "mxfp8", "nvfp4") for b in (4, 6, 8, 16)),
        Quantization.parse("bf16"),
        None,
    ],
    ids=str,
)
def test_mlx_unpacks_its_own_layouts(quantization):
    assert engine_serves("qwen3", quantization, "mlx")


FOREIGN = ("awq", "gptq", "bitsandbytes")
GGML = ("Q4_K_M", "Q8_0", "IQ2_XXS")


@pytest.mark.parametrize("name", [*GGML, *FOREIGN])
@pytest.mark.parametrize("engine", ["mlx", "torch"])
def test_a_packing_that_the_engine_does_not_load_is_refused_by_name(engine, name):
    verdict = engine_serves("qwen3", Quantization.parse(name), engine)
    assert not verdict
    assert name in verdict.reason
    assert verdict.hint
    # mlx-lm converts some of these itself; that cartoolkit does not is no fact about MLX.
    reads_garbage = not (engine == "mlx" and name in FOREIGN)
    assert ("garbage" in verdict.reason) == reads_garbage


@pytest.mark.parametrize(("bits", "group_size"), [(7, 64), (4, 48)])
def test_mlx_is_asked_for_its_kernels(bits, group_size):
    mx = importlib.import_module("mlx.core")
    with pytest.raises(ValueError, match="not supported"):
        mx.quantize(mx.zeros((1, 8 * group_size)), group_size=group_size, bits=bits)
    assert not engine_serves("llama", Quantization.from_mlx_config(bits, group_size), "mlx")


@pytest.mark.parametrize("quantization", [AFFINE, Quantization.from_mlx_config(4, 32, "mxfp4")], ids=str)
def test_torch_refuses_what_mlx_packed(quantization):
    verdict = engine_serves("llama", quantization, "torch")
    assert not verdict
    assert "packed for MLX" in verdict.reason
    assert "engine='mlx'" in verdict.hint


@pytest.mark.parametrize(
    "block",
    [
        {"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm"},
        {"quant_method": "gptq", "bits": 4},
        {"quant_method": "bitsandbytes", "load_in_4bit": True},
        {"quant_method": "bitsandbytes", "load_in_8bit": True},
        {"quant_method": "fp8", "weight_block_size": [128, 128]},
        {"quant_method": "mxfp4"},
    ],
    ids=lambda block: "-".join(map(str, block.values())),
)
def test_torch_says_of_a_packing_what_transformers_says(block):
    auto = importlib.import_module("transformers.quantizers.auto")
    said = ""
    try:
        auto.AutoHfQuantizer.from_config(dict(block), pre_quantized=True).validate_environment()
    except (ImportError, RuntimeError, ValueError) as error:
        said = str(error).splitlines()[0]
    verdict = engine_serves("llama", declared(**block), "torch")
    assert bool(verdict) == (said == "")
    assert said in verdict.reason


def test_torch_takes_a_packing_that_transformers_can_unpack(monkeypatch):
    auto = importlib.import_module("transformers.quantizers.auto")
    monkeypatch.setattr(auto.AwqQuantizer, "validate_environment", lambda self, **settings: None)
    assert engine_serves("llama", declared(quant_method="awq", bits=4), "torch")


@pytest.mark.parametrize("method", ["no_such_method", "unnamed"])
def test_a_packing_that_transformers_has_never_heard_of_is_refused(method):
    assert method in engine_serves("llama", declared(quant_method=method), "torch").reason


@pytest.mark.parametrize("quantization", [AFFINE, Quantization.parse("awq"), declared(quant_method="mxfp4")])
def test_llama_cpp_refuses_what_is_not_in_gguf(quantization):
    assert not engine_serves("llama", quantization, "gguf")


@pytest.mark.parametrize("name", ["Q4_K_M", "Q8_0", "IQ2_XXS", "TQ1_0", "MXFP4_MOE", "F16", "type 99"])
def test_llama_cpp_takes_every_type_that_a_gguf_file_names(name):
    assert engine_serves("llama", Quantization.parse(name), "gguf", format="gguf")


@pytest.mark.parametrize(
    ("engine", "readable"),
    [("torch", {"safetensors", "pickle"}), ("mlx", {"safetensors"}), ("gguf", {"gguf"})],
)
@pytest.mark.parametrize("files", ["safetensors", "gguf", "pickle"])
def test_each_engine_reads_its_formats(engine, readable, files):
    verdict = engine_serves("llama", None, engine, format=files)
    assert bool(verdict) == (files in readable)
    assert verdict or (files in verdict.reason and verdict.hint)


@pytest.mark.parametrize("engine", ENGINES)
def test_architecture_and_layout_must_both_pass(engine):
    fine = {"torch": Quantization.parse("bf16"), "mlx": AFFINE, "gguf": Quantization.parse("Q4_K_M")}[engine]
    assert engine_serves("qwen3", fine, engine)
    assert not engine_serves(NONSENSE, fine, engine)
    assert not engine_serves("qwen3", Quantization.parse("awq"), engine)
    assert not engine_serves(NONSENSE, Quantization.parse("awq"), engine)


def test_code_that_was_allowed_stands_in_for_the_architecture():
    assert engine_serves(NONSENSE, None, "torch", remote_code=True)
    assert not engine_serves(NONSENSE, None, "mlx", remote_code=True)


def test_a_layout_is_refused_without_importing_the_library():
    code = (
        "import sys; from cartoolkit.models import *; "
        "print([bool(engine_serves('llama', Quantization.parse('Q8_0'), e)) for e in ('torch', 'mlx')], "
        "sorted({'torch', 'transformers', 'mlx', 'mlx_lm'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[False, False] []"


# -- checkpoints -----------------------------------------------------------------------------------


def test_a_folder_is_admitted_by_torch_and_mlx_and_not_by_llama_cpp(checkpoint_folder):
    found = inspect_checkpoint(checkpoint_folder)
    assert [bool(checkpoint_served(found, engine)) for engine in ENGINES] == [True, True, False]
    admit(found, "torch")
    with pytest.raises(InvalidCheckpoint, match="checkpoint: the gguf engine reads gguf files") as caught:
        admit(found, "gguf")
    assert "engine='torch'" in caught.value.hint


def test_a_gguf_file_is_admitted_by_llama_cpp_alone(tiny_gguf):
    found = inspect_checkpoint(tiny_gguf)
    assert [bool(checkpoint_served(found, engine)) for engine in ENGINES] == [False, False, True]


@pytest.mark.parametrize("method", ["awq", "gptq", "bitsandbytes"])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_packed_folder_is_refused_by_every_engine_here(checkpoint_folder, engine, method):
    config = tiny_model.CONFIG | {"quantization_config": {"quant_method": method, "bits": 4}}
    (checkpoint_folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(InvalidCheckpoint) as caught:
        admit(inspect_checkpoint(checkpoint_folder), engine)
    assert caught.value.hint


def test_allowed_code_is_admitted_for_torch(checkpoint_folder):
    config = tiny_model.CONFIG | {"model_type": NONSENSE, "auto_map": {"AutoModelForCausalLM": "x.X"}}
    (checkpoint_folder / "config.json").write_text(json.dumps(config))
    admit(inspect_checkpoint(checkpoint_folder, trust_remote_code=True), "torch")


@pytest.mark.parametrize("code", [{"auto_map": {"AutoModelForCausalLM": "x.X"}}, {"model_file": "model.py"}])
def test_allowed_code_is_for_torch_and_mlx_is_passed_over(checkpoint_folder, code):
    (checkpoint_folder / "config.json").write_text(json.dumps(tiny_model.CONFIG | code))
    found = inspect_checkpoint(checkpoint_folder, trust_remote_code=True)
    assert [bool(checkpoint_served(found, engine)) for engine in ("torch", "mlx")] == [True, False]
    with pytest.raises(InvalidCheckpoint, match="code of its own, and the mlx engine runs none"):
        admit(found, "mlx")


def test_a_model_file_leaves_torch_with_its_own_architectures(checkpoint_folder):
    config = tiny_model.CONFIG | {"model_type": NONSENSE, "model_file": "model.py"}
    (checkpoint_folder / "config.json").write_text(json.dumps(config))
    assert not checkpoint_served(inspect_checkpoint(checkpoint_folder, trust_remote_code=True), "torch")


# -- what is installed -----------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_a_working_engine_says_its_versions(engine):
    metadata = importlib.import_module("importlib.metadata")
    status = engine_status(engine)
    assert (status.usable, status.why_not, status.hint) == (True, "", None)
    assert status.libraries == {name: metadata.version(name) for name in status.libraries}
    assert status.version == next(iter(status.libraries.values()))


@pytest.mark.parametrize(
    ("engine", "module", "package"),
    [
        ("torch", "transformers", "transformers"),
        ("mlx", "mlx_lm", "mlx-lm"),
        ("gguf", "llama_cpp", "llama-cpp-python"),
    ],
)
def test_an_engine_that_is_not_installed_is_refused_with_the_command(monkeypatch, engine, module, package):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == module else real(name))
    status, verdict = engine_status(engine), engine_serves("llama", None, engine)
    assert not status.usable
    assert package in status.why_not
    assert not verdict
    assert verdict.reason == status.why_not
    assert f"pip install 'cartoolkit[{engine}]'" in verdict.hint


@pytest.mark.parametrize("raised", ["ImportError('libmlx.so: no such file')", "OSError('libmlx.so: bad')"])
def test_a_library_that_cannot_be_imported_is_told_in_its_own_words(tmp_path, monkeypatch, raised):
    (tmp_path / "broken_library.py").write_text(f"raise {raised}\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(engines_module._PARTS, "mlx", {"broken_library": "mlx"})
    engines_module._import_failure.cache_clear()
    try:
        assert engine_status("mlx", try_import=False).usable
        status, verdict = engine_status("mlx"), engine_serves("llama", None, "mlx")
    finally:
        engines_module._import_failure.cache_clear()
    assert not status.usable
    assert "cannot be imported: broken_library: libmlx.so" in status.why_not
    assert not verdict
    assert verdict.reason == status.why_not


@pytest.mark.parametrize("engine", ["tensorflow", "", "Torch"])
def test_an_engine_that_does_not_exist_is_named(engine):
    with pytest.raises(ValueError, match="there are torch, mlx, gguf"):
        engine_status(engine)
    with pytest.raises(ValueError, match="there are torch, mlx, gguf"):
        engine_serves("llama", None, engine)
