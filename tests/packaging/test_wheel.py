"""The wheel, built and used in a fresh environment that has no engine installed."""

import subprocess
import sys
import zipfile

import pytest

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def wheel(checkout, tmp_path_factory):
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--outdir", out, checkout], check=True, capture_output=True
    )
    return next(out.glob("*.whl"))


def test_the_wheel_holds_the_widget_bundle_the_licence_and_the_types(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    corpus = "cartoolkit/retrieval/data/elements_and_countries.json.gz"
    for wanted in ("cartoolkit/ui/static/index.js", "cartoolkit/py.typed", corpus):
        assert wanted in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert any(name.endswith("licenses/NOTICE") for name in names)
    assert not [name for name in names if name.startswith(("tests", "widgets", "notebooks"))]


USE = """
import sys
import cartoolkit as ct
from cartoolkit.trace import ModelInfo, Step, Trace, TraceHeader

model = ModelInfo(name="m", engine="e", device="d", dtype="t", context_length=8, vocab_size=9)
trace = Trace.from_steps(TraceHeader(model=model), [Step(0, 1, "Hi", b"Hi")], token_bytes=lambda i: b"Hi")
again = Trace.load(trace.save(sys.argv[1]))
assert again.text == "Hi" and len(again.to_frame()) == 1 and "Hi" in again.to_html()
again.plot_confidence()
ct.Inspector
assert "torch" not in sys.modules
try:
    ct.load()
except ct.errors.MissingDependency as error:
    print(error, error.hint)
"""


def test_without_an_engine_traces_open_and_load_says_what_is_missing(wheel, environment, tmp_path):
    environment.pip(wheel)
    said = environment.run(environment.python, "-c", USE, tmp_path / "run.trace", cwd=tmp_path)
    assert "no engine here can load the default model" in said
    for engine in ("torch", "mlx", "gguf"):
        assert f"{engine}: not installed" in said
        assert f"pip install 'cartoolkit[{engine}]'" in said
    assert "smollm2-135m-instruct" in environment.run("cartoolkit", "models")
