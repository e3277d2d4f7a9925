"""What an import costs: which libraries a fresh interpreter has loaded after it."""

import json
import subprocess
import sys

import pytest

HEAVY = {"torch", "mlx", "mlx_lm", "transformers", "tokenizers", "huggingface_hub", "gguf", "scipy"}
NOTEBOOK = {"anywidget", "ipywidgets", "IPython", "traitlets"}
TABLES = {"pandas", "matplotlib"}
DATA = {"numpy", "pydantic", "safetensors", "jinja2", "tqdm", "typer"}
NOTHING_MORE = "pass"


def modules_after(statement: str) -> set[str]:
    """Names of all modules that a fresh interpreter has loaded after `statement`."""
    code = f"import sys, json\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return set(json.loads(run.stdout))


def top_level(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def test_importing_the_package_loads_none_of_its_libraries():
    loaded = modules_after("import cartoolkit")
    assert top_level(loaded) & (HEAVY | NOTEBOOK | TABLES | DATA) == set()
    assert {name for name in loaded if name.startswith("cartoolkit")} == {"cartoolkit"}


def test_importing_the_package_stays_small():
    # 106 modules on CPython 3.11, nearly all of them for reading the installed version.
    assert len(modules_after("import cartoolkit") - modules_after(NOTHING_MORE)) < 160


@pytest.mark.parametrize(
    ("module", "may_load"),
    [
        ("errors", set()),
        ("notices", set()),
        ("messages", {"pydantic"}),
        ("requests", {"pydantic"}),
        ("chat", set()),
        ("models", set()),
        ("trace", {"numpy", "pydantic"}),
        ("retrieval", {"numpy", "pydantic"}),
        ("engine", {"numpy", "pydantic"}),
        ("routing", set()),
        ("routing.router", {"numpy", "pydantic"}),
        ("engine.decoders.torch_decoder", {"numpy", "pydantic"}),
        ("engine.decoders.hf_tokenizer", {"numpy", "pydantic"}),
        ("ui", {"numpy", "pydantic", *NOTEBOOK}),
    ],
)
def test_each_room_loads_only_the_libraries_it_is_made_of(module, may_load):
    loaded = top_level(modules_after(f"import cartoolkit.{module}"))
    assert loaded & (HEAVY | NOTEBOOK | TABLES | DATA) <= may_load


@pytest.mark.parametrize(
    "use",
    [
        "dir(cartoolkit)",
        "cartoolkit.CartoolkitError",
        "cartoolkit.GenerateParams(temperature=0.5)",
        "cartoolkit.Message(role='user', content='Hi')",
        "cartoolkit.Trace, cartoolkit.Step",
        "cartoolkit.Engine, cartoolkit.load",
        "cartoolkit.Router, cartoolkit.routing.Profile",
    ],
)
def test_using_a_public_name_loads_no_engine_and_no_plots(use):
    assert top_level(modules_after(f"import cartoolkit; {use}")) & (HEAVY | TABLES) == set()
