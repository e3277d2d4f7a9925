"""The second model of the catalog, fetched for real (238 MB, once): it continues a text with Paris."""

import pytest

import cartoolkit as ct
from cartoolkit.models import CATALOG, cache, fetch, resolve

pytestmark = pytest.mark.model
ENTRY = CATALOG["gemma3-270m"]
PROMPT = "Germany: Berlin. Italy: Rome. Spain: Madrid. France:"


@pytest.fixture(scope="session")
def gemma():
    with ct.load(ENTRY.name, engine="gguf", context_length=512, quiet=True) as engine:
        yield engine


def test_the_base_model_continues_a_text_and_is_what_the_catalog_says(gemma):
    answer = gemma.generate(PROMPT, max_tokens=2, temperature=0)
    assert answer.text.strip().startswith("Paris")
    assert answer.trace.prompt_text == f"<bos>{PROMPT}"  # there is no chat template around it
    found = resolve(ENTRY.name, formats=("gguf",))
    assert (found.parameters, found.context_length) == (ENTRY.parameters, ENTRY.context_length)
    assert (found.quantization.name, found.licence) == (ENTRY.source.packing, "LicenseRef-Gemma")
    assert cache.sha256_of(fetch(ENTRY.name, format="gguf")) == ENTRY.source.sha256
