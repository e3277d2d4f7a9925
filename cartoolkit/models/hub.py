"""A checkpoint from the Hugging Face hub: the local copy if there is one, else a download of safe files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from cartoolkit.errors import InvalidCheckpoint
from cartoolkit.models import cache
from cartoolkit.models.admission import engine_serves
from cartoolkit.models.checkpoint import Checkpoint, inspect_checkpoint
from cartoolkit.models.config import CONFIG_FILE, MODELOPT_FILE, brings_code, quantization_of, read_config
from cartoolkit.models.gguf_checkpoint import PART
from cartoolkit.models.hub_errors import hub_errors_explained, require_hub_library
from cartoolkit.models.weights import INDEX_FILE, PICKLE_FILE, PICKLE_INDEX, WEIGHTS_FILE, first_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cartoolkit.models.engines import EngineName
    from cartoolkit.models.weights import Format

__all__ = ["formats_on_hub", "from_hub", "is_hub_name", "local_copy"]

NAME = re.compile(
    r"(?P<repository>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)"
    r"(?::(?P<tag>[\w.-]+)|/(?P<file>(?:[\w.-]+/)*[\w.-]+\.gguf))?",
    re.ASCII | re.IGNORECASE,
)
# Settings and tokenizer, beside the weights; never *.bin (pickle) or *.py (code) unless they were allowed.
SETTINGS = ("*.json", "*.jinja", "tokenizer.model", "vocab.txt", "merges.txt")
ANSWER_SECONDS = 8.0
NOT_NEEDED = ("*/*", "consolidated*.safetensors", "adapter_*")


@dataclass(frozen=True, slots=True)
class HubName:
    """`owner/model`, and perhaps one GGUF file of it.

    Attributes:
        repository: `owner/model`.
        tag: what the file's name must contain, such as `Q4_K_M`; None without.
        file: the file's path in the repository; None without.
    """

    repository: str
    tag: str | None = None
    file: str | None = None

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """The parts of `name`; None if it has not this form."""
        found = NAME.fullmatch(name)
        if found is None or len(found["repository"]) > 96 or len(name) > 512:
            return None
        if found["file"] is None and found["repository"].lower().endswith(".gguf"):
            return None  # two parts that end so are a path
        return cls(found["repository"], found["tag"], found["file"])

    @property
    def names_gguf(self) -> bool:
        """Whether one GGUF file is meant."""
        return self.tag is not None or self.file is not None


def is_hub_name(name: str) -> bool:
    """Whether `name` has the form `owner/model`, `owner/model:tag` or `owner/model/file.gguf`."""
    return HubName.parse(name) is not None


def from_hub(
    name: str,
    formats: Sequence[Format] = ("safetensors",),
    *,
    progress: bool = True,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
    engine: EngineName | None = None,
) -> Checkpoint:
    """The checkpoint `owner/model`: what the local hub cache has is used as it is, and costs no connection.

    Otherwise the hub is asked for the list of files, `config.json` is downloaded and judged, the free space
    is asked for, and only then the weights come.

    Args:
        name: such as `HuggingFaceTB/SmolLM2-360M-Instruct`, or one GGUF file of a repository.
        formats: what the caller can use, best first.
        progress: show the download's progress bars.
        allow_pickle: pickle files may be downloaded where there is nothing else.
        trust_remote_code: code may be downloaded with the checkpoint.
        engine: what must be able to serve it: asked with `config.json` at hand, before the weights come.

    Raises:
        ModelNotFound: the hub has no such model, or does not show it to this user.
        NetworkUnavailable: it is not (wholly) in the local cache, and the hub cannot be reached.
        InvalidCheckpoint: it is there, and must not or cannot be loaded.
        NotEnoughSpace: the disk is too small; asked before the weights are downloaded.
        MissingDependency: huggingface_hub is not installed.
    """
    require_hub_library()
    wish = _Wish(_parsed(name), name, tuple(formats), allow_pickle, trust_remote_code, engine)
    return _from_local_cache(wish) or _download(wish, progress=progress)


def local_copy(name: str, formats: Sequence[Format] = ("safetensors",)) -> Checkpoint | None:
    """What an earlier download of `name` left in the local hub cache, if it is whole; makes no connection.

    Raises:
        MissingDependency: huggingface_hub is not installed.
        InvalidCheckpoint: it asks to run code of its own.
    """
    require_hub_library()
    return _from_local_cache(_Wish(_parsed(name), name, tuple(formats), False, False, None))


def formats_on_hub(name: str) -> tuple[Format, ...]:
    """The formats that a repository has weights in: by the local copy, else by the hub's list of files.

    Raises:
        ModelNotFound, NetworkUnavailable, MissingDependency: as for `from_hub`.
    """
    require_hub_library()
    parsed = _parsed(name)
    if parsed.names_gguf:
        return ("gguf",)
    local = _local_snapshot(parsed.repository)
    found = _formats(_names_below(local)) if local else ()
    if found:
        return found
    with hub_errors_explained(name):
        return _formats(_listed(parsed.repository))


@dataclass(frozen=True, slots=True)
class _Wish:
    """What is asked for: a name, and what may come."""

    hub_name: HubName
    typed: str
    formats: tuple[Format, ...]
    allow_pickle: bool
    trust_remote_code: bool
    engine: EngineName | None

    def chosen(self, names: Sequence[str]) -> Format:
        """The first of the formats in which the repository with these files has weights."""
        there: tuple[Format, ...] = ("gguf",) if self.hub_name.names_gguf else _formats(names)
        if (found := first_of(self.formats, there)) is not None:
            return found
        if "gguf" in there and not set(there) & {"safetensors", "pickle"}:
            raise InvalidCheckpoint(
                f"The hub's {self.typed} comes as GGUF only, and {' or '.join(self.formats)} is asked for.",
                hint="Use the gguf engine for it (pip install 'cartoolkit[gguf]'), or the repository with the"
                " original safetensors.",
            )
        return "safetensors"  # what is wrong with it is told where the folder is inspected

    def inspect(self, place: Path) -> Checkpoint:
        """Look at what was downloaded."""
        return inspect_checkpoint(
            place,
            name=self.typed,
            allow_pickle=self.allow_pickle,
            trust_remote_code=self.trust_remote_code,
        )

    def patterns(self, format: Format) -> list[str]:  # noqa: A002
        """The files of a checkpoint in Hugging Face's layout that may come."""
        weights = "pytorch_model*.bin" if format == "pickle" else "*.safetensors"
        return [weights, *SETTINGS, *(["*.py"] if self.trust_remote_code else [])]


def _parsed(name: str) -> HubName:
    parsed = HubName.parse(name)
    assert parsed is not None, "the caller asked is_hub_name"
    return parsed


def _formats(names: Iterable[str]) -> tuple[Format, ...]:
    names = set(names)
    found: list[Format] = []
    if names & {WEIGHTS_FILE, INDEX_FILE}:
        found.append("safetensors")
    if any(name.lower().endswith(".gguf") for name in names):
        found.append("gguf")
    if names & {PICKLE_FILE, PICKLE_INDEX}:
        found.append("pickle")
    return tuple(found)


def _listed(repository: str) -> list[str]:
    """The paths of a repository's files; the one question that the library asks only once."""
    from huggingface_hub import HfApi

    siblings = HfApi().model_info(repository, timeout=ANSWER_SECONDS).siblings or []
    return [sibling.rfilename for sibling in siblings]


# -- the local copy --------------------------------------------------------------------------------


def _from_local_cache(wish: _Wish) -> Checkpoint | None:
    """What an earlier download left; None if that is nothing, or not the whole checkpoint."""
    folder = _local_snapshot(wish.hub_name.repository)
    if folder is None:
        return None
    names = _names_below(folder)
    there = ("gguf",) if wish.hub_name.names_gguf else _formats(names)
    chosen = first_of(wish.formats, there)
    if chosen == "gguf":
        return _local_gguf(wish, folder, names)
    if wish.hub_name.names_gguf or not (folder / CONFIG_FILE).exists():
        return None
    read_config(folder, trust_remote_code=wish.trust_remote_code)  # refused today: not worth a download
    if chosen is None or _local_snapshot(wish.hub_name.repository, wish.patterns(chosen)) is None:
        return None
    try:
        return wish.inspect(folder)
    except InvalidCheckpoint:
        return None


def _local_gguf(wish: _Wish, folder: Path, names: list[str]) -> Checkpoint | None:
    try:
        return wish.inspect(folder / _gguf_files(wish, names)[0])
    except InvalidCheckpoint:
        return None  # several, or a part is missing: the hub's own list decides


def _local_snapshot(repository: str, patterns: Sequence[str] = ()) -> Path | None:
    """The folder of an earlier download, if every file is there that `patterns` name."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    options: dict[str, Any] = {"allow_patterns": list(patterns), "ignore_patterns": list(NOT_NEEDED)}
    try:
        return Path(snapshot_download(repository, local_files_only=True, **options))
    except LocalEntryNotFoundError:
        return None


def _names_below(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


# -- the download ----------------------------------------------------------------------------------


def _download(wish: _Wish, *, progress: bool) -> Checkpoint:
    repository = wish.hub_name.repository
    with hub_errors_explained(wish.typed):
        names = _listed(repository)
        chosen = wish.chosen(names)
        if chosen == "gguf":
            files = _gguf_files(wish, names)
            folder = _fetched(repository, [_literal(file) for file in files], (), progress=progress)
            return wish.inspect(folder / files[0])
        _judge_config(wish, chosen, names)
        folder = _fetched(repository, wish.patterns(chosen), NOT_NEEDED, progress=progress)
    return wish.inspect(folder)


def _judge_config(wish: _Wish, format: Format, names: Sequence[str]) -> None:  # noqa: A002
    """Look at the settings, which are small, before the weights come."""
    from huggingface_hub import hf_hub_download

    repository = wish.hub_name.repository
    folder = Path(hf_hub_download(repository, CONFIG_FILE)).parent
    config = read_config(folder, trust_remote_code=wish.trust_remote_code)
    if wish.engine is None:
        return
    if MODELOPT_FILE in names:
        hf_hub_download(repository, MODELOPT_FILE)
    packing, own_code = quantization_of(folder, config), brings_code(config, wish.engine)
    verdict = engine_serves(config["model_type"], packing, wish.engine, format=format, remote_code=own_code)
    if not verdict:
        raise InvalidCheckpoint(
            f"{wish.typed}: {verdict.reason} Its weights were not downloaded.", hint=verdict.hint
        )


def _fetched(repository: str, wanted: Sequence[str], unwanted: Sequence[str], *, progress: bool) -> Path:
    """Download files into the hub's cache, after a look at the disk; the snapshot's folder."""
    from huggingface_hub import constants, snapshot_download

    patterns: dict[str, Any] = {"allow_patterns": list(wanted), "ignore_patterns": list(unwanted)}
    silent: dict[str, Any] = {"tqdm_class": _silent_bar()}
    files = snapshot_download(repository, dry_run=True, **patterns, **silent)
    target = Path(constants.HF_HUB_CACHE)
    cache.require_space(sum(file.file_size or 0 for file in files if file.will_download), target)
    with cache.disk_errors_explained(target):
        return Path(snapshot_download(repository, **patterns, **({} if progress else silent)))


def _gguf_files(wish: _Wish, names: Iterable[str]) -> list[str]:
    """The file that is meant, or the parts of the split model that is meant.

    Raises:
        InvalidCheckpoint: none fits, or several do; the message lists them.
    """
    there = sorted(name for name in names if name.lower().endswith(".gguf"))
    fitting = [name for name in there if _fits(wish.hub_name, name)]
    models = list(dict.fromkeys(map(_model_key, fitting)))
    if len(models) == 1:
        return fitting
    listed = ", ".join(fitting[:8] or there[:8]) or "none at all"
    raise InvalidCheckpoint(
        f"The hub's {wish.typed} fits {len(models)} GGUF models, and must fit one; there are: {listed}.",
        hint=f"Name one by its file or its type: {wish.hub_name.repository}:Q4_K_M, for instance.",
    )


def _fits(hub_name: HubName, path: str) -> bool:
    if hub_name.file is not None:
        return _model_key(path) == _model_key(hub_name.file)
    if hub_name.tag is not None:
        tag = re.escape(hub_name.tag)
        stem = _model_key(path.rsplit("/", 1)[-1])
        return re.search(rf"(?<![A-Za-z0-9]){tag}(?![A-Za-z0-9_])", stem, re.IGNORECASE) is not None
    return "mmproj" not in path.lower()  # the picture half of a model that also reads pictures


def _model_key(path: str) -> str:
    """One name for all parts of a split model."""
    part = PART.fullmatch(path)
    return part["stem"] if part else path[: -len(".gguf")]


def _literal(path: str) -> str:
    """`path` as a pattern that matches itself alone."""
    return re.sub(r"([*?\[])", r"[\1]", path)


def _silent_bar() -> type:
    from tqdm import tqdm

    class Silent(tqdm):
        def __init__(self, *args: Any, **settings: Any) -> None:  # noqa: ANN401
            super().__init__(*args, **(settings | {"disable": True}))

    return Silent
