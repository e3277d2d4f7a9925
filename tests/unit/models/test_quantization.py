"""What a name or a config says about the packing of weights; the seed's own cases first."""

import string

import gguf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cartoolkit.models import Quantization, QuantScheme

AFFINE, FLOAT = QuantScheme.AFFINE_GROUP_INT, QuantScheme.BLOCK_SCALED_FLOAT


@pytest.mark.parametrize("mode", [None, "affine", "AFFINE"])
def test_no_mode_is_affine(mode):
    found = Quantization.from_mlx_config(4, 64, mode)
    assert (found.scheme, found.bits, found.group_size, found.mode) == (AFFINE, 4, 64, "affine")


@pytest.mark.parametrize("mode", ["mxfp4", "mxfp8", "nvfp4", "MXFP4"])
@pytest.mark.parametrize("bits", [4, 6, 8, 16, None])
def test_block_scaled_float_is_known_by_its_mode_at_any_width(mode, bits):
    found = Quantization.from_mlx_config(bits, 32, mode)
    assert (found.scheme, found.bits) == (FLOAT, bits)


def test_a_mode_of_tomorrow_is_unknown_under_its_own_name():
    found = Quantization.from_mlx_config(4, 64, "trellis")
    assert (found.scheme, found.name) == (QuantScheme.UNKNOWN, "trellis")


@pytest.mark.parametrize(
    ("name", "scheme", "bits"),
    [
        ("bf16", QuantScheme.UNQUANTIZED, 16),
        ("BFloat16", QuantScheme.UNQUANTIZED, 16),
        ("F16", QuantScheme.UNQUANTIZED, 16),
        ("float32", QuantScheme.UNQUANTIZED, 32),
        ("Q4_K_M", QuantScheme.K_QUANT_MIXED, 4),
        ("q4_k_m", QuantScheme.K_QUANT_MIXED, 4),
        ("Q2_K", QuantScheme.K_QUANT_MIXED, 2),
        ("Q3_K_XL", QuantScheme.K_QUANT_MIXED, 3),
        ("Q6_K", QuantScheme.K_QUANT_MIXED, 6),
        ("Q8_0", QuantScheme.RTN_BLOCK, 8),
        ("Q4_1", QuantScheme.RTN_BLOCK, 4),
        ("TQ2_0", QuantScheme.RTN_BLOCK, 2),
        ("IQ2_XXS", QuantScheme.UNKNOWN, 2),
        ("IQ4_NL", QuantScheme.UNKNOWN, 4),
        ("mxfp8", FLOAT, 8),
        ("MXFP4_MOE", FLOAT, 4),
        ("nvfp4", FLOAT, 4),
        ("awq", QuantScheme.UNKNOWN, None),
        ("gptq", QuantScheme.UNKNOWN, None),
        ("bitsandbytes", QuantScheme.UNKNOWN, None),
        ("", QuantScheme.UNKNOWN, None),
        ("Q4", QuantScheme.UNKNOWN, None),
    ],
)
def test_names_are_parsed(name, scheme, bits):
    found = Quantization.parse(name)
    assert (found.name, found.scheme, found.bits) == (name, scheme, bits)


def test_every_type_of_the_gguf_library_is_placed():
    packed = [kind.name for kind in gguf.GGMLQuantizationType if kind.name[0] in "QT" or "FP4" in kind.name]
    assert {"Q4_0", "Q4_K", "TQ1_0", "MXFP4"} <= set(packed)
    for name in packed:
        assert Quantization.parse(name).scheme is not QuantScheme.UNKNOWN, name
    for kind in gguf.GGMLQuantizationType:
        if kind.name.startswith("IQ"):
            assert Quantization.parse(kind.name).is_ggml


@pytest.mark.parametrize("name", ["awq", "GPTQ", "compressed-tensors", "fp8"])
def test_an_unknown_name_is_kept_as_the_method(name):
    assert Quantization.parse(name).method == name.lower()


@pytest.mark.parametrize(
    ("config", "name", "scheme", "method"),
    [
        ({}, None, None, None),
        ({"quantization": None}, None, None, None),
        ({"quantization_config": {}}, None, None, None),
        ({"quantization": {"bits": 4, "group_size": 64}}, "affine", AFFINE, None),
        ({"quantization": {"bits": 8, "group_size": 32, "mode": "mxfp8"}}, "mxfp8", FLOAT, None),
        ({"quantization": {"mode": "mxfp4"}}, "mxfp4", FLOAT, None),
        ({"quantization_config": {"bits": 4, "group_size": 64}}, "affine", AFFINE, None),
        ({"quantization_config": {"quant_method": "mxfp4"}}, "mxfp4", FLOAT, "mxfp4"),
        ({"quantization_config": {"quant_method": "AWQ", "bits": 4}}, "awq", QuantScheme.UNKNOWN, "awq"),
        ({"quantization_config": {"quant_method": "fp8"}}, "fp8", QuantScheme.UNKNOWN, "fp8"),
        ({"quantization_config": {"load_in_4bit": True}}, "unnamed", QuantScheme.UNKNOWN, "unnamed"),
        ({"quantization_config": "gptq"}, "gptq", QuantScheme.UNKNOWN, "gptq"),
        ({"compression_config": {"quant_method": "sparseml"}}, "sparseml", QuantScheme.UNKNOWN, "sparseml"),
        (
            {"text_config": {"quantization_config": {"quant_method": "gptq"}}},
            "gptq",
            QuantScheme.UNKNOWN,
            "gptq",
        ),
        ({"text_config": ["quantization_config"]}, None, None, None),
    ],
    ids=str,
)
def test_a_config_is_read(config, name, scheme, method):
    found = Quantization.from_config(config)
    if name is None:
        assert found is None
    else:
        assert (found.name, found.scheme, found.method) == (name, scheme, method)


@pytest.mark.parametrize("bits", [None, "4", 4.0, -4, True, [4]])
def test_a_width_that_is_no_number_leaves_the_scheme_as_it_is(bits):
    found = Quantization.from_config({"quantization": {"bits": bits, "group_size": 64}})
    assert (found.scheme, found.bits, found.group_size) == (AFFINE, None, 64)


def test_the_declared_block_is_kept_and_takes_no_part_in_comparisons():
    block = {"quant_method": "gptq", "bits": 4, "desc_act": True}
    found = Quantization.from_config({"quantization_config": block})
    assert found.declared == block
    assert found == Quantization.from_config({"quantization_config": block | {"desc_act": False}})
    assert hash(found) == hash(Quantization("gptq", QuantScheme.UNKNOWN, 4, method="gptq"))


NAMES = st.text(alphabet=string.ascii_letters + string.digits + "_- .é", max_size=12)


@given(name=st.one_of(NAMES, st.from_regex(r"\A(i|t|I)?[qQ][0-9]{1,30}_[kK01A-Z]{1,4}\Z")))
def test_any_text_is_parsed_the_same_in_any_case(name):
    one, two = Quantization.parse(name), Quantization.parse(name.swapcase())
    assert (one.scheme, one.bits, one.is_ggml, one.is_packed) == (
        two.scheme,
        two.bits,
        two.is_ggml,
        two.is_packed,
    )
    assert one.name == name
    assert one.bits is None or 0 <= one.bits <= 99


@given(
    block=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["bits", "group_size", "mode", "quant_method", "quantization_config"]), inner
            )
        ),
        max_leaves=8,
    ),
    key=st.sampled_from(["quantization", "quantization_config", "compression_config", "text_config"]),
)
def test_no_block_raises_and_none_means_nothing_was_declared(block, key):
    found = Quantization.from_config({key: block})
    if key != "text_config":
        assert (found is None) == (not block)
