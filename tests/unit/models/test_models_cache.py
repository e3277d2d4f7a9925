"""The cache folder: where it is, and that files get there whole or not at all."""

import errno
import shutil
from pathlib import Path
from typing import NamedTuple

import platformdirs
import pytest

from cartoolkit.errors import NotEnoughSpace
from cartoolkit.models import cache, cache_dir


class Usage(NamedTuple):
    total: int
    used: int
    free: int


def test_the_cache_is_where_the_platform_keeps_caches(monkeypatch):
    monkeypatch.delenv("CARTOOLKIT_CACHE", raising=False)
    assert cache_dir() == platformdirs.user_cache_path("cartoolkit")


def test_a_variable_moves_the_cache(monkeypatch):
    monkeypatch.setenv("CARTOOLKIT_CACHE", "~/elsewhere")
    assert cache_dir() == Path.home() / "elsewhere"


def test_too_little_space_is_told_with_both_sizes_the_folder_and_the_way_out(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(0, 0, 12_300_000))
    folder = tmp_path / "not" / "there" / "yet"
    with pytest.raises(NotEnoughSpace) as caught:
        cache.require_space(734_000_000, folder)
    assert all(part in str(caught.value) for part in ("734 MB", "12 MB", str(folder)))
    assert "CARTOOLKIT_CACHE" in caught.value.hint
    assert not folder.exists()


def test_exactly_enough_space_is_enough(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(0, 0, 1000))
    cache.require_space(1000, tmp_path)
    with pytest.raises(NotEnoughSpace):
        cache.require_space(1001, tmp_path)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_fills_up_is_explained(tmp_path, number):
    with pytest.raises(NotEnoughSpace, match="filled up"), cache.disk_errors_explained(tmp_path):
        raise OSError(number, "full")


def test_other_os_errors_are_not_touched(tmp_path):
    with pytest.raises(BlockingIOError), cache.disk_errors_explained(tmp_path):
        raise BlockingIOError(errno.EAGAIN, "no")


@pytest.mark.parametrize("reason", [ValueError, KeyboardInterrupt])
def test_a_workspace_is_gone_whatever_happens(own_cache, reason):
    def work_and_fail():
        with cache.workspace("m") as work:
            (work / "deep").mkdir()
            (work / "deep" / "file").write_text("half")
            raise reason

    with pytest.raises(reason):
        work_and_fail()
    assert list((own_cache / "tmp").iterdir()) == []


def test_what_a_killed_process_left_is_removed_by_the_next_but_not_anothers(own_cache):
    for name in ("m.killed", "other.working"):
        (own_cache / "tmp" / name).mkdir(parents=True)
    with cache.workspace("m"):
        assert not (own_cache / "tmp" / "m.killed").exists()
        assert (own_cache / "tmp" / "other.working").exists()


def test_publishing_replaces_an_older_folder_as_a_whole(own_cache):
    target = own_cache / "models" / "m"
    target.mkdir(parents=True)
    (target / "old").write_text("old")
    with cache.workspace("m") as work:
        new = work / "model"
        new.mkdir()
        (new / "new").write_text("new")
        cache.publish(new, target)
    assert [path.name for path in target.iterdir()] == ["new"]
    assert list((own_cache / "tmp").iterdir()) == []


def test_a_lock_is_free_again_after_an_error(own_cache):
    waits = []
    with pytest.raises(ValueError, match="x"), cache.exclusive("m"):
        raise ValueError("x")
    with cache.exclusive("m", on_wait=lambda: waits.append(1)):
        pass
    assert waits == []


def test_sha256_is_that_of_the_whole_file(tmp_path):
    # FIPS 180-2, appendix B.3: the digest of one million letters "a".
    (tmp_path / "a").write_bytes(b"a" * 1_000_000)
    expected = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
    assert cache.sha256_of(tmp_path / "a") == expected
