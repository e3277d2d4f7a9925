"""Small traces made by hand; every number is a fraction that float32 holds exactly or a log of one."""

import numpy as np

from cartoolkit.trace import Candidates, Event, ModelInfo, Step, Trace, TraceHeader

VOCAB = {
    1: b"The",
    2: b"<|im_end|>",
    3: b" sky",
    4: b" <script>alert(1)</script>",
    5: b"</textarea>",
    6: b" &amp;",
    7: b"\n\n",
    8: b"\xf0\x9f",
    9: b"\x99\x82",
    10: b"\x98\x80",
    11: b" $x_1$",
    12: "你".encode(),
    13: "\u0301".encode(),
    14: "\u202eabc\u2028".encode(),
    15: b'" onmouseover="x',
    16: b"\x00",
}


def header(**changes):
    model = ModelInfo(
        name="tiny <model>", engine="torch", device="cpu", dtype="float32", context_length=64, vocab_size=1000
    )
    return TraceHeader(
        model=model, **{"prompt": "Why?", "params": {"temperature": 0.5, "seed": 3}, **changes}
    )


def step(index, token_id, text, ids=(), raw=(), drawn=(), removed=(), **rest):
    """A step whose candidates have these probabilities; the chosen token is found among them."""
    with np.errstate(divide="ignore"):
        logprobs, processed = (np.log(np.array(p, np.float32)) for p in (raw, drawn))
    known = {}
    if len(ids):
        at = list(ids).index(token_id)
        known = {
            "logprob": float(logprobs[at]),
            "processed_logprob": float(processed[at]),
            "rank": at + 1,
            "max_prob": raw[0],
            "margin": raw[0] - (raw[1] if len(raw) > 1 else 0),
            "entropy": 1.5,
            "varentropy": 0.25,
            "rest_mass": 1.0 - sum(raw),
            "processed_rest_mass": 1.0 - sum(drawn),
            "draw": 0.125,
        }
    candidates = Candidates(
        np.array(ids, np.int32),
        tuple(VOCAB[i].decode(errors="replace") for i in ids),
        logprobs,
        processed,
        np.array(removed or [0] * len(ids), np.uint8),
    )
    return Step(index, token_id, text, VOCAB[token_id], candidates=candidates, **{**known, **rest})


def trace(steps, **changes):
    prompt = changes.pop("prompt_ids", [1, 3])
    logprobs = changes.pop("prompt_logprobs", None)
    return Trace.from_steps(
        header(**changes),
        steps,
        prompt_ids=prompt,
        prompt_logprobs=logprobs,
        token_bytes=VOCAB.__getitem__,
    )


def sky_steps():
    """Sure; unsure and not the likeliest; half an emoji; the other half; then the end token."""
    return [
        step(0, 1, "The", (1, 3), (0.75, 0.125), (1, 0), (0, 4), elapsed=0.25),
        step(1, 4, " <script>alert(1)</script>", (3, 4), (0.25, 0.125), (0.5, 0.5), elapsed=0.5),
        step(2, 8, "", (8, 5, 6), (0.25, 0.125, 0.0625), (1, 0, 0), (0, 3, 5), elapsed=0.75, incomplete=True),
        step(3, 9, "🙂", (10, 9), (0.25, 0.125), (0, 1), (1, 0), elapsed=1.0),
        step(4, 2, "", (2, 7), (0.5, 0.25), (0.75, 0.25), elapsed=1.25, special=True),
    ]


def sky(**changes):
    """`sky_steps` as a finished run."""
    return trace(sky_steps(), **{"stop_reason": "stop", "stop_detail": "end token <|im_end|>", **changes})


def plain():
    """Two steps decoded with inspect=False."""
    return trace([step(0, 1, "The", elapsed=0.5), step(1, 3, " sky", elapsed=1.0)], stop_reason="length")


def empty():
    return trace([], prompt_ids=[])


def events(*texts):
    return [Event(kind="truncated", text=text) for text in texts]
