"""What the browser does with update messages, as far as the kernel's side depends on it."""

import numpy as np

# Written down here, not imported: the browser's half has its own copy as well.
DTYPES = {
    "token_id": "<i4", "logprob": "<f4", "rank": "<i4", "processed_logprob": "<f4", "max_prob": "<f4",
    "entropy": "<f4", "varentropy": "<f4", "margin": "<f4", "rest_mass": "<f4",
    "processed_rest_mass": "<f4", "draw": "<f8", "elapsed": "<f8", "flags": "u1",
    "candidate_id": "<i4", "candidate_logprob": "<f4", "candidate_processed_logprob": "<f4",
    "candidate_removed_by": "u1",
}  # fmt: skip


def columns(block, buffers):
    """The numbers of a block by column: [count] or [count, width]."""
    assert len(buffers) == len(block["columns"])
    found = {}
    for name, buffer in zip(block["columns"], buffers, strict=True):
        numbers = np.frombuffer(buffer, DTYPES[name])
        found[name] = numbers.reshape(block["count"], -1) if name.startswith("candidate") else numbers
        assert len(found[name]) == block["count"]
    return found


class FrontEnd:
    """One view: takes what is new, notices what is missing.

    Attributes:
        messages: every message that came.
        texts, ids, kept: of the steps it knows; `text` is what stands.
        parts: the other parts of the messages, as last heard of.
        gaps: how often a message began after what it knows.
    """

    def __init__(self):
        self.messages = []
        self.gaps = 0
        self._clear(None)

    def _clear(self, run):
        self.run, self.texts, self.ids, self.kept, self.parts = run, [], [], [], {}

    def receive(self, content, buffers):
        self.messages.append((content, buffers))
        if content["run"] != self.run:
            if "info" not in content:
                self.gaps += 1
                return
            self._clear(content["run"])
        self.parts.update({k: v for k, v in content.items() if k not in {"type", "v", "run", "seq", "steps"}})
        if "steps" in content:
            self._take(content["steps"], buffers)

    def _take(self, block, buffers):
        if block["first"] > len(self.texts):
            self.gaps += 1
            return
        numbers = columns(block, buffers)
        known = len(self.texts) - block["first"]
        self.ids += numbers["token_id"].tolist()[known:]
        # Steps that are known may have been dropped since, and their text cut.
        self.texts[block["first"] : block["first"] + block["count"]] = block["texts"]
        self.kept[block["first"] : block["first"] + block["count"]] = (numbers["flags"] & 8 != 0).tolist()

    @property
    def text(self):
        return "".join(text for text, kept in zip(self.texts, self.kept, strict=True) if kept)

    def ready(self):
        """What it says when it appears, or when it has noticed a gap."""
        return {"type": "ready", "v": 1, "run": self.run, "steps": len(self.texts)}
