"""Which engine `load` takes: the order of each machine, every wish, and the reasons that it gives."""

import dataclasses
import importlib
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from cartoolkit.engine import choosing, opening
from cartoolkit.engine.choosing import Wishes, choose_engine, machine_kind, named_engine
from cartoolkit.engine.decoders.cores import usable_cores
from cartoolkit.engine.opening import prepare_opening
from cartoolkit.errors import InvalidCheckpoint, InvalidRequest, MissingDependency
from cartoolkit.models import Checkpoint, Verdict
from cartoolkit.models.engines import EngineStatus

ALL = ("torch", "mlx", "gguf")
BOTH = ("gguf", "safetensors")


def checkpoint(format_):
    return Checkpoint(
        path=Path("/models/some"), name="some", config={}, model_type="llama", architectures=(),
        weight_files=(), weight_bytes=1, parameters=1, dtypes=(), format=format_, quantization=None,
        fingerprint="sha256:1", tokenizer_hash=None, is_catalog=False, licence=None,
    )  # fmt: skip


def no_other_device(engine, world, wanted):
    """In place of the library's answer: it has what `world.gpus` says, and the processor (not so MLX)."""
    there = [world.gpus[engine] or "cpu", *(["cpu"] if engine != "mlx" else [])]
    if wanted not in there:
        raise InvalidRequest(f"device {wanted!r} is not available.", hint=f"Build {engine} anew.")
    return wanted, "asked for"


@pytest.fixture
def world(monkeypatch):
    """A machine with engines and a model; what it was asked to fetch is in `fetched`."""

    class World:
        kind, installed, broken, formats, fetched = "CPU", ALL, (), BOTH, []
        unserved: dict[str, Verdict] = {}  # noqa: RUF012
        damaged: dict[str, str] = {}  # noqa: RUF012
        gpus = {"torch": "cuda:1", "mlx": "", "gguf": ""}  # noqa: RUF012

        def choose(self, engine=None, **wishes):
            return choose_engine("some", named_engine(engine), Wishes(**wishes), progress=False)

    world = World()

    def status(engine, *, try_import=True):
        if engine not in world.installed:
            return EngineStatus(
                engine, False, None, f"the {engine} engine needs things.", f"Install {engine}"
            )
        if try_import and engine in world.broken:
            return EngineStatus(engine, False, "1", f"the {engine} engine cannot be imported.", "Restart")
        return EngineStatus(engine, True, "1")

    def resolve(_model, *, formats, engine=None, allow_pickle=False, **_):
        world.fetched.append(engine)
        if engine in world.damaged:
            raise InvalidCheckpoint(world.damaged[engine], hint="Fetch it again.")
        if engine in world.unserved:
            raise InvalidCheckpoint(world.unserved[engine].reason, hint=world.unserved[engine].hint)
        readable = (*formats, "pickle") if allow_pickle else formats
        return checkpoint(next(f for f in readable if f in world.formats))

    world.fetched = []
    monkeypatch.setattr(choosing, "engine_status", status)
    monkeypatch.setattr(choosing, "resolve", resolve)
    monkeypatch.setattr(choosing, "available_formats", lambda _model: world.formats)
    monkeypatch.setattr(choosing, "machine_kind", lambda: world.kind)
    for engine in ALL:
        monkeypatch.setitem(opening._DEVICE, engine, partial(no_other_device, engine, world))
    return world


# The order


@pytest.mark.parametrize(
    ("kind", "engine", "why"),
    [
        ("CUDA", "torch", "fastest with CUDA"),
        ("Apple GPU", "mlx", "fastest on an Apple GPU"),
        ("CPU", "gguf", "fastest on a CPU"),
    ],
)
def test_each_machine_has_its_fastest_engine(world, kind, engine, why):
    world.kind = kind
    choice = world.choose()
    assert (choice.engine, choice.why) == (engine, why)
    assert choice.passed_over == dict.fromkeys(
        [e for e in choosing.ORDER[kind] if e != engine], "slower here"
    )
    assert world.fetched == [engine]


def test_the_next_one_is_taken_where_the_fastest_is_not_installed(world):
    world.installed = ("torch", "mlx")
    choice = world.choose()
    assert choice.engine == "torch"
    assert choice.passed_over == {"gguf": "not installed", "mlx": "slower here"}
    assert choice.checkpoint.format == "safetensors"


def test_an_engine_that_cannot_be_imported_is_passed_over_with_its_reason(world):
    world.broken = ("gguf",)
    choice = world.choose()
    assert choice.engine == "torch"
    assert choice.passed_over["gguf"] == "the gguf engine cannot be imported."


@pytest.mark.parametrize(("formats", "engine"), [(("gguf",), "gguf"), (("safetensors",), "torch")])
def test_only_an_engine_that_reads_the_files_is_taken(world, formats, engine):
    world.formats = formats
    choice = world.choose()
    assert choice.engine == engine
    for other in set(ALL) - {engine}:
        reads = other == "gguf" if formats == ("gguf",) else other != "gguf"
        assert choice.passed_over[other] == ("slower here" if reads else f"reads no {formats[0]} files")


def test_pickles_are_read_by_torch_where_they_are_allowed(world):
    world.formats = ("pickle",)
    choice = world.choose(allow_pickle=True)
    assert choice.engine == "torch"
    assert choice.passed_over == dict.fromkeys(("gguf", "mlx"), "reads no pickle files")


def test_an_engine_that_cannot_serve_the_model_is_passed_over(world):
    world.unserved = {"gguf": Verdict(False, "llama.cpp does not know it.", "Take another.")}
    choice = world.choose()
    assert choice.engine == "torch"
    assert choice.passed_over["gguf"] == "llama.cpp does not know it."


def test_damaged_files_of_one_format_leave_the_other(world):
    world.damaged = {"gguf": "some.gguf is cut off."}
    assert world.choose().engine == "torch"


# Wishes


@pytest.mark.parametrize(
    ("wishes", "engine", "passed_over"),
    [
        ({"dtype": "float32"}, "torch", {"gguf": "keeps the file's own precision"}),
        ({"quantize": "int8"}, "torch", {"gguf": "takes weights as the file has them"}),
        ({"quantize": "int4"}, "mlx", {"torch": "does not quantize to int4"}),
        ({"device": "cuda:1"}, "torch", {"gguf": "has no device cuda:1", "mlx": "has no device cuda:1"}),
        ({"device": "cpu"}, "gguf", {"torch": "slower here", "mlx": "slower here"}),
        ({"context_length": 4096}, "gguf", dict.fromkeys(("torch", "mlx"), "needs no context_length")),
    ],
    ids=str,
)  # fmt: skip
def test_a_wish_takes_the_engine_that_can_fulfil_it(world, wishes, engine, passed_over):
    choice = world.choose(**wishes)
    assert choice.engine == engine
    assert choice.why == f"fits {next(iter(wishes))}"
    assert passed_over.items() <= choice.passed_over.items()


@pytest.mark.parametrize(
    ("kind", "gpus", "device", "engine", "passed_over"),
    [
        ("Apple GPU", {"mlx": "gpu", "gguf": "gpu"}, "cpu", "gguf", {"mlx": "has no device cpu"}),
        ("Apple GPU", {"mlx": "gpu", "gguf": "gpu"}, "gpu", "mlx", {"torch": "has no device gpu"}),
        ("Apple GPU", {"torch": "mps"}, "mps", "torch", dict.fromkeys(("mlx", "gguf"), "has no device mps")),
        ("CUDA", {"gguf": "gpu"}, "gpu", "gguf", {"torch": "has no device gpu"}),
        ("CUDA", {"mlx": "gpu"}, "gpu", "mlx", dict.fromkeys(("torch", "gguf"), "has no device gpu")),
    ],
)
def test_an_engine_without_the_device_is_passed_over_for_the_next(
    world, kind, gpus, device, engine, passed_over
):
    world.kind, world.gpus = kind, world.gpus | gpus
    choice = world.choose(device=device)
    assert choice.engine == engine
    assert passed_over.items() <= choice.passed_over.items()


@pytest.mark.parametrize("device", ["gpu", "cuda:3", "metal", "vulkan", "tpu", ""])
def test_a_device_that_no_engine_has_is_refused_before_anything_is_fetched(world, device):
    with pytest.raises(InvalidRequest, match=rf"gguf: has no device {device}; torch: has no device {device}"):
        world.choose(device=device)
    for engine in ALL:
        with pytest.raises(InvalidRequest, match="device "):
            world.choose(engine, device=device)
    assert world.fetched == []


@pytest.mark.parametrize("engine", ALL)
@pytest.mark.parametrize("has_gpu", [True, False])
@pytest.mark.parametrize("device", ["cpu", "gpu", "cuda", "cuda:9", "mps", "metal", "vulkan", "rocm", "tpu"])
def test_what_is_refused_while_choosing_is_refused_while_opening(monkeypatch, engine, has_gpu, device):
    """Real libraries but for what they say of a graphics card: choosing and opening never differ."""
    # Imported first: what is imported from a patched module would keep the patch.
    for module in ("llama_cpp_decoder", "mlx_decoder", "torch_decoder"):
        importlib.import_module(f"cartoolkit.engine.decoders.{module}")
    assert choosing.engine_status(engine).usable
    library = SimpleNamespace(llama_supports_gpu_offload=lambda: has_gpu)
    monkeypatch.setattr("cartoolkit.engine.decoders.llama_cpp_library.require_llama_cpp", lambda: library)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: has_gpu)
    gpu = SimpleNamespace(type=SimpleNamespace(name="gpu" if has_gpu else "cpu"))
    monkeypatch.setattr("mlx.core.default_device", lambda: gpu)
    monkeypatch.setattr("cartoolkit.models.admit", lambda *_: None)

    def refused(ask):
        try:
            ask()
        except InvalidRequest:
            return True
        return False

    wishes = Wishes(device=device)
    while_choosing = bool(choosing._outside_reason(engine, wishes, BOTH, try_import=True)[0])
    while_opening = refused(lambda: prepare_opening(engine, checkpoint("gguf"), wishes))
    has = {"torch": {"cpu", "mps"}, "mlx": {"gpu"}, "gguf": {"cpu", "gpu"}} if has_gpu else {}
    assert while_choosing == while_opening == (device not in has.get(engine, {"cpu"}))


@pytest.mark.parametrize("engine", ["mlx", "gguf"])
@pytest.mark.parametrize("permission", ["allow_pickle", "trust_remote_code"])
def test_a_permission_that_means_nothing_to_a_named_engine_is_refused(world, engine, permission):
    with pytest.raises(InvalidRequest, match=f"{permission}=True means nothing to the {engine} engine"):
        world.choose(engine, **{permission: True})
    assert world.fetched == []
    assert world.choose("torch", **{permission: True}).engine == "torch"
    assert world.choose(**{permission: True}).engine == "gguf", "a permission is no demand"


def test_attention_is_asked_of_torch_alone(world):
    chosen = world.choose(attention="eager")
    assert (chosen.engine, chosen.why) == ("torch", "fits attention")
    assert chosen.passed_over["gguf"] == "does not say where the model looks"


def test_an_unknown_kind_of_attention_is_refused_before_anything_is_fetched(world):
    for engine in ("auto", "torch", "gguf"):
        with pytest.raises(InvalidRequest, match="attention must be 'eager' or None; got 'flash'"):
            world.choose(engine, attention="flash")
    assert world.fetched == []


def test_several_wishes_are_named_together(world):
    assert world.choose(device="cpu", dtype="float16").why == "fits device, dtype"


@pytest.mark.parametrize("wishes", [{"quantize": "int3"}, {"context_length": 0, "dtype": "float32"}], ids=str)
def test_wishes_that_no_engine_has_are_refused_before_anything_is_fetched(world, wishes):
    with pytest.raises(InvalidRequest, match=r"no engine here can load some\. gguf: .*; torch: .*; mlx: "):
        world.choose(**wishes)
    assert world.fetched == []


@pytest.mark.parametrize(
    ("engine", "wishes", "said"),
    [
        (
            "torch",
            {"context_length": 0},
            "context_length=0 means nothing to the torch engine: its cache grows",
        ),
        ("mlx", {"context_length": 99}, "context_length=99 means nothing to the mlx engine: its cache grows"),
        ("gguf", {"dtype": "float32"}, "dtype='float32' means nothing to the gguf engine: .* own precision"),
        ("gguf", {"quantize": "int8"}, "quantize='int8' means nothing to the gguf engine: .* used as it is"),
        (
            "mlx",
            {"attention": "eager"},
            "attention='eager' means nothing to the mlx engine: it does not say where",
        ),
        (
            "gguf",
            {"attention": "eager"},
            "attention='eager' means nothing to the gguf engine: it does not say where",
        ),
    ],
)
def test_a_wish_that_means_nothing_to_a_named_engine_is_refused_before_anything_is_fetched(
    world, engine, wishes, said
):
    with pytest.raises(InvalidRequest, match=said):
        world.choose(engine, **wishes)
    assert world.fetched == []
    with pytest.raises(InvalidRequest, match=said):
        prepare_opening(engine, checkpoint("gguf"), Wishes(**wishes))


# Nothing fits


def test_with_nothing_installed_every_engine_that_would_do_is_hinted_at(world):
    world.installed = ()
    with pytest.raises(MissingDependency) as caught:
        world.choose()
    said = "no engine here can load some. gguf: not installed; torch: not installed; mlx: not installed."
    hint = "Install an engine: " + " or ".join(
        f"pip install 'cartoolkit[{engine}]'" for engine in ("gguf", "torch", "mlx")
    )
    assert (str(caught.value), caught.value.hint) == (said, hint)


def test_what_would_help_is_what_is_hinted_at(world):
    """A GGUF file and no llama.cpp: another engine for safetensors would change nothing."""
    world.installed, world.formats = (), ("gguf",)
    with pytest.raises(MissingDependency) as caught:
        world.choose()
    assert caught.value.hint == "Install an engine: pip install 'cartoolkit[gguf]'"
    assert "torch: reads no gguf files" in str(caught.value)


def test_a_file_that_its_engine_refuses_is_no_missing_library(world):
    world.installed, world.formats, world.damaged = ("gguf",), ("gguf",), {"gguf": "some.gguf is cut off."}
    with pytest.raises(
        InvalidCheckpoint, match=r"gguf: some\.gguf is cut off; torch: reads no gguf"
    ) as caught:
        world.choose()
    assert caught.value.hint == "Fetch it again."


# Names


@pytest.mark.parametrize("name", ["llama.cpp", "llama_cpp", "Llama-CPP", "gguf", "GGUF"])
def test_llama_cpp_has_several_names(world, name):
    choice = world.choose(name)
    assert (choice.engine, choice.why, choice.passed_over) == ("gguf", "asked for", {})


def test_other_names_of_the_engines():
    assert [named_engine(name) for name in ("pytorch", "Torch", "mlx-lm", "MLX")] == [
        "torch",
        "torch",
        "mlx",
        "mlx",
    ]
    assert named_engine("auto") is named_engine(None) is None


@pytest.mark.parametrize("name", ["onnx", "", 3, True, ["torch"], b"torch"])
def test_a_wrong_name_is_told_with_those_that_are_right(name):
    with pytest.raises(InvalidRequest, match="engine must be 'auto', 'torch', 'mlx', 'gguf'; got "):
        named_engine(name)


def test_a_named_engine_that_is_not_installed_is_told_before_anything_is_fetched(world):
    world.installed = ("torch",)
    with pytest.raises(MissingDependency, match="the gguf engine needs things") as caught:
        world.choose("gguf")
    assert caught.value.hint == "Install gguf"
    assert world.fetched == []


# The machine


@pytest.mark.parametrize(
    ("platform", "processor", "card", "cuda", "kind"),
    [
        ("darwin", "arm64", False, False, "Apple GPU"),
        ("darwin", "x86_64", False, False, "CPU"),
        ("linux", "x86_64", False, True, "CPU"),
        ("linux", "x86_64", True, False, "CPU"),
        ("linux", "x86_64", True, True, "CUDA"),
        ("win32", "AMD64", True, True, "CUDA"),
    ],
)
def test_what_computes_here(monkeypatch, platform, processor, card, cuda, kind):
    asked = []
    monkeypatch.setattr(choosing.sys, "platform", platform)
    monkeypatch.setattr(choosing.platform, "machine", lambda: processor)
    monkeypatch.setattr(choosing.os.path, "exists", lambda _path: False)
    monkeypatch.setattr(choosing.shutil, "which", lambda _name: "/usr/bin/nvidia-smi" if card else None)
    monkeypatch.setattr(choosing, "_torch_sees_cuda", lambda: bool(asked.append(1)) or cuda)
    found = machine_kind()
    monkeypatch.undo()
    assert found == kind
    assert bool(asked) == card, "torch is imported only where there is a card"


def test_a_card_of_amd_counts_where_torch_uses_it(monkeypatch):
    monkeypatch.setattr(choosing.sys, "platform", "linux")
    monkeypatch.setattr(choosing.shutil, "which", lambda _name: None)
    monkeypatch.setattr(choosing.os.path, "exists", lambda path: path == "/dev/kfd")
    kinds = [machine_kind(lambda: True), machine_kind(lambda: False)]
    monkeypatch.undo()
    assert kinds == ["CUDA", "CPU"]


def test_a_torch_that_cannot_be_imported_sees_no_card(tmp_path):
    """A broken one, in a process of its own, where a card is found: no error, and the processor computes."""
    for module, code in {"torch": "raise OSError('libtorch.so is missing')", "transformers": ""}.items():
        (tmp_path / f"{module}.py").write_text(code)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from cartoolkit.engine import choosing; "
        "choosing.os.path.exists = lambda path: True; sys.platform = 'linux'; print(choosing.machine_kind())"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "CPU"


def test_wishes_are_the_settings_of_load():
    assert {field.name for field in dataclasses.fields(Wishes)} == {
        "device", "dtype", "quantize", "context_length", "attention", "allow_pickle", "trust_remote_code"
    }  # fmt: skip


# Cores


@pytest.fixture
def large_machine(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: set(range(64)), raising=False)
    monkeypatch.setattr("psutil.cpu_count", lambda logical=True: 64 if logical else 32)


@pytest.mark.parametrize(
    ("quota", "cores"),
    [
        ("max 100000", 32), ("400000 100000", 4), ("150000 100000", 1), ("20000 100000", 1),
        ("9900000 100000", 32), ("", 32), ("max", 32), ("a b", 32), ("100000 0", 32),
    ],
)  # fmt: skip
def test_a_containers_quota_limits_the_cores(large_machine, tmp_path, quota, cores):
    (tmp_path / "cpu.max").write_text(quota)
    assert usable_cores(tmp_path) == cores


@pytest.mark.parametrize(("quota", "cores"), [("-1", 32), ("300000", 3), ("1000", 1), ("x", 32)])
def test_cgroups_of_version_1_limit_them_too(large_machine, tmp_path, quota, cores):
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text(f"{quota}\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert usable_cores(tmp_path) == cores


@pytest.mark.parametrize(
    ("asked", "cores"),
    [("2,1", 2), (" 8 ", 8), ("0", 32), ("abc", 32), ("-3", 32), ("", 32), ("99", 32), ("²", 32)],
)  # fmt: skip
def test_omp_num_threads_is_honoured_where_it_is_a_number(large_machine, tmp_path, monkeypatch, asked, cores):
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert usable_cores(tmp_path) == cores


def test_a_process_that_is_bound_to_some_cores_uses_no_more(large_machine, tmp_path, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {3, 7, 9}, raising=False)
    assert usable_cores(tmp_path) == 3


def test_at_least_one_core_is_used_where_nothing_is_known(large_machine, tmp_path, monkeypatch):
    monkeypatch.setattr("psutil.cpu_count", lambda logical=True: None)
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert usable_cores(tmp_path) == 1
