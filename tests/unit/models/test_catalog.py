"""The catalog: pins that are well formed, names that are found, and an import that costs nothing."""

import re
import subprocess
import sys

import pytest

import cartoolkit.models
from cartoolkit.errors import ModelNotFound
from cartoolkit.models import CATALOG, DEFAULT_MODEL, find


@pytest.mark.parametrize("entry", CATALOG.values(), ids=CATALOG.keys())
def test_every_pin_is_well_formed(entry):
    source = entry.source
    assert all(
        re.fullmatch("[0-9a-f]{64}", pin) for pin in (source.sha256, *(w.sha256 for w in source.wheels))
    )
    for wheel in source.wheels:
        assert wheel.file == f"{wheel.package.replace('-', '_')}-{wheel.version}-py3-none-any.whl"
        assert wheel.requirement == f"{wheel.package}=={wheel.version}"
        assert wheel.member.startswith(f"{wheel.package.replace('-', '_')}/")
    assert 0 < source.download_bytes < source.size < entry.disk_bytes


def test_a_model_in_pieces_is_the_pieces_in_their_order():
    # As the distribution that assembles them lists them.
    source = find("gemma3-270m").source
    assert [wheel.package for wheel in source.wheels] == [f"{source.package}-part{n}" for n in (1, 2, 3, 4)]
    assert [wheel.member.rpartition(".")[2] for wheel in source.wheels] == [
        "part00",
        "part01",
        "part02",
        "part03",
    ]
    assert source.download_bytes == 56_634_990 + 60_953_371 + 59_882_045 + 60_704_618


def test_a_licence_with_terms_comes_with_their_address():
    entry = find("gemma3-270m")
    assert entry.licence == "LicenseRef-Gemma"
    assert "https://ai.google.dev/gemma/terms" in entry.terms
    assert find(DEFAULT_MODEL).terms == ""


@pytest.mark.parametrize(("name", "entry"), CATALOG.items())
def test_a_model_is_filed_under_its_own_name(name, entry):
    assert name == entry.name == name.lower()


def test_the_default_model_is_in_the_catalog():
    assert DEFAULT_MODEL in CATALOG


def test_case_and_surrounding_space_do_not_matter():
    assert find("  SmolLM2-135M-Instruct ") is CATALOG["smollm2-135m-instruct"]


@pytest.mark.parametrize("misspelt", ["smollm", "smollm2-135m", "smolm2-135m-instruct", "SmolLM2"])
def test_a_misspelt_name_is_answered_with_the_nearest(misspelt):
    with pytest.raises(ModelNotFound, match=re.escape(repr(misspelt))) as caught:
        find(misspelt)
    assert "Did you mean 'smollm2-135m-instruct'?" in caught.value.hint


def test_a_name_that_resembles_nothing_is_answered_with_what_there_is():
    with pytest.raises(ModelNotFound) as caught:
        find("xyz")
    assert "Did you mean" not in caught.value.hint
    assert "smollm2-135m-instruct" in caught.value.hint


def test_public_names_are_sorted_and_there():
    names = cartoolkit.models.__all__
    assert names == sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name))
    assert all(hasattr(cartoolkit.models, name) for name in names)


def test_importing_the_room_loads_no_heavy_library():
    heavy = {"torch", "transformers", "gguf", "numpy", "huggingface_hub", "tokenizers", "tqdm"}
    code = f"import sys, cartoolkit.models; print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
