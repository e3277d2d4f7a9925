"""A decoder without a model: its next token is written down in advance."""

import time

import numpy as np

from cartoolkit.engine.decoder import common_prefix
from cartoolkit.trace import ModelInfo

EOS = 0


class ScriptedDecoder:
    """Answers every prompt with `script`, whatever was read.

    The vocabulary is given as bytes by id; id 0 is the end token. Row n of logits puts probability one half
    on script[n] and spreads the rest evenly.
    """

    chat_template = None
    prefill_chunk = 4

    def __init__(self, vocabulary, script, *, context_length=64, delay=0.0, special=(EOS,)):
        self.vocabulary = [b"<end>", *vocabulary]
        self.script = list(script)
        self.eos_ids = frozenset([EOS])
        self.special_ids = frozenset(special)
        self.info = ModelInfo(
            name="scripted", engine="script", device="cpu", dtype="float32",
            context_length=context_length, vocab_size=len(self.vocabulary),
        )  # fmt: skip
        self.delay = delay
        self.cached = []
        self.forwards = []
        self.fail_at = None
        self.closed = False
        self.prompt_length = 0

    def encode(self, text, *, add_special_tokens=False):
        """The longest token of the vocabulary at each place; characters that none begins with are lost."""
        data, ids = text.encode(), []
        while data:
            fitting = [i for i, token in enumerate(self.vocabulary) if i != EOS and data.startswith(token)]
            best = max(fitting, key=lambda i: len(self.vocabulary[i]), default=None)
            ids += [] if best is None else [best]
            data = data[1 if best is None else len(self.vocabulary[best]) :]
        return ids

    def encode_continuation(self, text):
        return self.encode(text)

    def decode(self, ids):
        return b"".join(self.vocabulary[i] for i in ids if i not in self.special_ids).decode(errors="replace")

    def token_bytes(self, token_id):
        return self.vocabulary[token_id]

    def begin_prompt(self, ids, *, repeatable=False):
        # A scripted row is the same however the tokens before it were read.
        keep = min(common_prefix(self.cached, ids), len(ids) - 1)
        self.cached = self.cached[:keep]
        self.prompt_length = len(ids)
        return keep

    def prefill(self, ids, pos):
        self.forward(ids, pos)

    def forward(self, ids, pos):
        assert pos == len(self.cached)
        if self.fail_at is not None and len(self.forwards) == self.fail_at:
            raise RuntimeError("no memory for this")
        time.sleep(self.delay)
        self.forwards.append((list(ids), pos))
        self.cached = [*self.cached, *ids]
        return self.row(len(self.cached) - self.prompt_length)

    def forward_all(self, ids, pos):
        return np.stack([self.forward([i], pos + n) for n, i in enumerate(ids)])

    def row(self, n):
        size = len(self.vocabulary)
        probs = np.full(size, 0.5 / (size - 1))
        probs[self.script[n] if 0 <= n < len(self.script) else EOS] = 0.5
        return np.log(probs).astype(np.float32)

    def clear_kv_cache(self):
        self.cached = []

    def close(self):
        self.closed = True
