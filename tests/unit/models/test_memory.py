"""Memory: the tightest limit counts, and a refusal says both numbers."""

import dataclasses
import importlib

import numpy as np
import pytest
from safetensors.numpy import save_file

from cartoolkit.errors import NotEnoughMemory
from cartoolkit.models import Quantization, free_memory, inspect_checkpoint, require_memory, weight_memory
from cartoolkit.models import memory as memory_module
from cartoolkit.models.memory import cgroup_free


def write(root, **files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return root


def v2(root, own, **groups):
    """A unified hierarchy with this process in `own`; `groups`: path to (limit, usage, inactive file)."""
    write(root, **{"proc/self/cgroup": f"0::/{own}", "sys/fs/cgroup/cgroup.controllers": "cpu memory"})
    for path, (limit, usage, cached) in groups.items():
        folder = f"sys/fs/cgroup/{path}"
        stat = f"anon 5\nfile 9\ninactive_file {cached}\nactive_file 3"
        write(
            root,
            **{
                f"{folder}/memory.max": limit,
                f"{folder}/memory.current": usage,
                f"{folder}/memory.stat": stat,
            },
        )
    return root


def test_a_limit_of_the_own_group_counts(tmp_path):
    assert cgroup_free(v2(tmp_path, "a/b", **{"a/b": (1000, 300, 0)})) == 700


def test_a_tighter_limit_above_counts(tmp_path):
    groups = {"a/b": (1000, 300, 0), "a": (500, 400, 0)}
    assert cgroup_free(v2(tmp_path, "a/b", **groups)) == 100


def test_pages_of_files_that_may_be_dropped_are_free(tmp_path):
    assert cgroup_free(v2(tmp_path, "a", a=(1000, 900, 600))) == 700


def test_usage_above_the_limit_is_nothing_left(tmp_path):
    assert cgroup_free(v2(tmp_path, "a", a=(1000, 1100, 0))) == 0


def test_no_limit_is_no_limit(tmp_path):
    assert cgroup_free(v2(tmp_path, "a", a=("max", 300, 0))) is None
    assert cgroup_free(tmp_path / "nothing") is None


def test_inside_a_container_the_top_of_the_mount_is_the_own_group(tmp_path):
    assert cgroup_free(v2(tmp_path, "", **{"": (2000, 500, 0)})) == 1500
    assert cgroup_free(write(tmp_path, **{"proc/self/cgroup": "0::/../../docker/x"})) == 1500


@pytest.mark.parametrize("own", ["/docker/abc", "/"])
def test_the_first_version_of_cgroups_is_read(tmp_path, own):
    top = "sys/fs/cgroup/memory"
    write(
        tmp_path,
        **{
            "proc/self/cgroup": f"12:cpu,cpuacct:{own}\n7:memory:{own}\n1:name=systemd:{own}",
            f"{top}/memory.limit_in_bytes": 4000,
            f"{top}/memory.usage_in_bytes": 1500,
            f"{top}/memory.stat": "inactive_file 1\ntotal_inactive_file 500",
        },
    )
    assert cgroup_free(tmp_path) == 3000


@pytest.mark.parametrize("text", ["", "nonsense", "0", "::", "7:memory", "\xff", "0::/\n" * 3])
def test_a_strange_cgroup_file_is_no_limit(tmp_path, text):
    assert cgroup_free(write(tmp_path, **{"proc/self/cgroup": text})) is None


@pytest.mark.parametrize(("limited", "expected"), [(None, 5000), (9000, 5000), (1200, 1200)])
def test_the_smaller_of_machine_and_limit_is_what_is_free(monkeypatch, limited, expected):
    psutil = importlib.import_module("psutil")
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("Memory", (), {"available": 5000}))
    monkeypatch.setattr(memory_module, "cgroup_free", lambda: limited)
    assert free_memory() == expected


def test_on_this_machine_something_is_free_and_not_more_than_there_is():
    psutil = importlib.import_module("psutil")
    assert 0 < free_memory() <= psutil.virtual_memory().total


def test_what_does_not_fit_is_refused_with_both_numbers():
    require_memory(500, 500, what="X")
    with pytest.raises(NotEnoughMemory) as caught:
        require_memory(8_000_000_000, 512_000_000, what="Llama 8B", place="cuda:0")
    said = str(caught.value)
    assert all(part in said for part in ("Llama 8B", "8,000 MB", "cuda:0", "512 MB"))
    assert "dtype" in caught.value.hint


@pytest.mark.parametrize(("dtype", "size"), [("float32", 4), ("bfloat16", 2), ("float16", 2), ("float64", 8)])
def test_weights_take_their_number_times_the_size_of_the_dtype(checkpoint_folder, dtype, size):
    torch = importlib.import_module("torch")
    assert torch.empty(1, dtype=getattr(torch, dtype)).element_size() == size
    found = inspect_checkpoint(checkpoint_folder)
    assert weight_memory(found, dtype) == weight_memory(found, getattr(torch, dtype)) == 36 * size


def test_without_a_dtype_weights_take_what_they_take_on_disk(checkpoint_folder):
    save_file({"a": np.ones(10, np.float16)}, checkpoint_folder / "model.safetensors")
    assert weight_memory(inspect_checkpoint(checkpoint_folder)) == 20


def test_packed_weights_and_gguf_stay_as_they_are(checkpoint_folder, tiny_gguf):
    found = inspect_checkpoint(checkpoint_folder)
    packed = dataclasses.replace(found, quantization=Quantization.from_mlx_config(4, 64))
    assert weight_memory(packed, "float32") == found.weight_bytes
    file = inspect_checkpoint(tiny_gguf)
    assert weight_memory(file, "float32") == file.weight_bytes


def test_a_dtype_of_unknown_size_is_refused(checkpoint_folder):
    with pytest.raises(ValueError, match="'int3'"):
        weight_memory(inspect_checkpoint(checkpoint_folder), "int3")
