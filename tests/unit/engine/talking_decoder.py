"""A decoder without a model that reads: what it says next is a function of all the text before."""

import numpy as np
from scripted_decoder import EOS, ScriptedDecoder


class TalkingDecoder(ScriptedDecoder):
    """Says what `reply` wants.

    `reply` takes the text so far, prompt included, and returns the next token's text ("" ends the answer)
    and its probability; the other tokens share the rest.
    """

    def __init__(self, words, reply, **options):
        characters = [*map(chr, range(32, 127)), "\n", "\N{REPLACEMENT CHARACTER}"]
        super().__init__(
            [*(w.encode() for w in words), *(c.encode() for c in characters)],
            [],
            **{"context_length": 4000, **options},
        )
        self.prefill_chunk = 512
        self.reply = reply

    def row(self, _):
        text = b"".join(self.vocabulary[i] for i in self.cached).decode(errors="replace")
        word, prob = self.reply(text)
        chosen = self.vocabulary.index(word.encode()) if word else EOS
        size = len(self.vocabulary)
        probs = np.full(size, (1 - prob) / (size - 1))
        probs[chosen] = prob
        return np.log(probs).astype(np.float32)

    def prefill(self, ids, pos):
        assert pos == len(self.cached)
        self.forwards.append((list(ids), pos))
        self.cached = [*self.cached, *ids]
