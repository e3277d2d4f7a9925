"""An engine that knows no capital until a passage names it, for the notebooks of the FlareView's tests."""

import time

import numpy as np
from scripted_decoder import EOS, ScriptedDecoder

from cartoolkit.engine import Engine
from cartoolkit.retrieval import Hit

QUESTION = "What is the capital of Australia?"
PASSAGE = "Canberra is the capital of Australia; <script>window.__pwned=1</script> it has a lake."
OTHER = "Sydney is a city in Australia."
WORDS = ["?", " <answer>", " It", " is", " Sydney", " Canberra", ".", " Its", " lake", " is", " large"]
# The word, its probability, and the likeliest one beside it.
GUESS = [(" It", 0.9, " Its"), (" is", 0.95, " lake"), (" Sydney", 0.4, " Canberra"), (".", 0.9, " is")]
KNOWS = [(" It", 0.9, " Its"), (" is", 0.95, " lake"), (" Canberra", 0.85, " Sydney"), (".", 0.9, " is")]
MORE = [
    (" Its", 0.8, " It"),
    (" lake", 0.7, " is"),
    (" is", 0.9, "."),
    (" large", 0.35, " is"),
    (".", 0.9, " It"),
]


class Reader(ScriptedDecoder):
    """Reads one token a word, and answers by what stands in the prompt."""

    def encode(self, text, *, add_special_tokens=False):
        """Every word it does not know is a question mark; a mark at the end says where the answer begins."""
        words = [f" {word.strip(';.')}" for word in text.split()]
        return [self._id(word) if word in WORDS else 1 for word in words] + [2]

    def encode_continuation(self, text):
        return [self._id(f" {word}") for word in text.split()]

    def _id(self, word):
        return 1 + WORDS.index(word)

    def row(self, n):
        if 2 not in self.cached:
            return np.zeros(len(self.vocabulary), np.float32)  # in the middle of the prompt
        begin = len(self.cached) - self.cached[::-1].index(2)
        known = self._id(" Canberra") in self.cached[:begin]
        script = [*(KNOWS if known else GUESS), *MORE, ("<end>", 0.9, ".")]
        word, prob, rival = script[min(len(self.cached) - begin, len(script) - 1)]
        beside = 0.7 * min(prob, 1 - prob)
        probs = np.full(len(self.vocabulary), (1 - prob - beside) / (len(self.vocabulary) - 2))
        probs[EOS if word == "<end>" else self._id(word)] = prob
        probs[self._id(rival)] = beside
        return np.log(probs).astype(np.float32)


class Library:
    """Two passages for whatever is asked, after `delay` seconds."""

    def __init__(self, delay=0.0):
        self.delay = delay

    def search(self, query, k=3):
        time.sleep(self.delay)
        found = [
            Hit("au", PASSAGE, 7.25, "capitals.md:3", "Capitals"),
            Hit("sy", OTHER, 3.5, "cities.md:9", "Cities"),
        ]
        return found[:k]


def play(**options):
    return Engine(lambda: Reader([word.encode() for word in WORDS], (), **{"context_length": 900, **options}))
