"""A small embedder whose vectors can be worked out by hand."""

from __future__ import annotations

import numpy as np

LETTERS = "abcdefgh"


class Letters:
    """Counts letters a to h, and remembers what it was asked; every letter counts 0.01 more."""

    def __init__(self, name="letters", letters=LETTERS):
        self.name = name
        self.letters = letters
        self.seen = []

    def __call__(self, texts):
        self.seen += texts
        counts = [[text.lower().count(letter) + 0.01 for letter in self.letters] for text in texts]
        vectors = np.array(counts, np.float32).reshape(len(texts), len(self.letters))
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
