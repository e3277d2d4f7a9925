"""Engines without a model for the notebooks of the browser tests, which import this file in their kernel."""

from pathlib import Path

from scripted_decoder import EOS, ScriptedDecoder

from cartoolkit.engine import Engine

WORDS = [" one", " two", " three", " four", " five", " six", " seven", " eight", " nine", " ten"]
HOSTILE = [
    "<script>window.__pwned=1</script>",
    "</textarea>",
    "&amp;",
    "a\u2028b",
    "\u200fab",
    "<img src=x onerror='window.__pwned=2'>",
    "\"><svg onload='window.__pwned=3'>",
    "{{ 7*7 }} ${7*7} `x`",
]


class Stage(ScriptedDecoder):
    """Reads any prompt, one token a word; makes an empty file `sign` when it has read one."""

    sign = None

    def encode(self, text, *, add_special_tokens=False):
        return [1] * max(1, len(text.split()))

    def forward(self, ids, pos):
        row = super().forward(ids, pos)
        if self.sign is not None:
            Path(self.sign).touch()
        return row


def play(words=WORDS, *, length=None, name="scripted", fail_at=None, **options):
    """An engine that says these words over and over, `length` tokens long; the first decoder may fail."""
    script = [i % len(words) + 1 for i in range(length or len(words))] + [EOS]
    failures = [fail_at]

    def load():
        decoder = Stage([word.encode() for word in words], script, **options)
        decoder.info = decoder.info.model_copy(update={"name": name})
        decoder.fail_at = failures.pop() if failures else None
        return decoder

    return Engine(load)


def endless():
    """As `play`, so slow and so long that a run is never over before a page has been asked about it."""
    return play(length=2000, delay=0.25, context_length=5000)
