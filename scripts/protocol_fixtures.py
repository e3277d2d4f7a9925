"""Writes the hand-made protocol examples in tests/fixtures/protocol that both halves are tested against."""

import base64
import json
from pathlib import Path

import numpy as np

from cartoolkit.trace.step import Candidates, Step
from cartoolkit.ui._protocol import steps_block

FOLDER = Path(__file__).parents[1] / "tests" / "fixtures" / "protocol"


def step(index, token_id, text, token, probs, processed, texts, removed, **rest):
    logprobs = np.log(np.array(probs, np.float32))
    with np.errstate(divide="ignore"):
        drawn = np.log(np.array(processed, np.float32))
    chosen = rest.pop("chosen", 0)
    return Step(
        index=index, token_id=token_id, text=text, bytes=token,
        logprob=float(logprobs[chosen]), rank=rest.pop("rank", chosen + 1),
        processed_logprob=float(drawn[chosen]), max_prob=max(probs), entropy=rest.pop("entropy"),
        varentropy=1.0, margin=probs[0] - probs[1],
        candidates=Candidates(
            np.array([token_id if i == chosen else 1000 + i for i in range(len(probs))], np.int32),
            tuple(texts), logprobs, drawn, np.array(removed, np.uint8)),
        rest_mass=1 - sum(probs), processed_rest_mass=1 - sum(processed), **rest)


def steps():
    return [
        step(0, 504, "The", b"The", [0.75, 0.125], [1, 0], ["The", "This"], [0, 4], entropy=0.9, draw=0.25, elapsed=0.2),
        step(1, 11, " <script>alert(1)</script>", b" <script>alert(1)</script>", [0.375, 0.25, 0.125],
             [0.6, 0.4, 0], [" <script>alert(1)</script>", " &amp;", "</textarea>"], [0, 0, 4],
             entropy=1.9, draw=0.5, elapsed=0.25),
        step(2, 12, "", b"\xf0\x9f", [0.25, 0.2, 0.05], [0.25, 0.75, 0], ["\\xF0\\x9F", " a", "\u2028"],
             [0, 0, 3], entropy=2.5, draw=0.8, elapsed=0.3, incomplete=True),
        step(3, 13, "\U0001f642", b"\x99\x82", [0.25, 0.125, 0.0625], [0, 1, 0], ["\U0001f600", "\U0001f642", "\u200f\u05d0"],
             [4, 0, 5], entropy=2.25, draw=0.125, elapsed=0.35, chosen=1),
        step(4, 2, "", b"<|im_end|>", [0.5, 0.25], [0.5, 0.5], ["<|im_end|>", "\n"], [0, 0], entropy=1.0, draw=0.3,
             elapsed=0.4, special=True),
    ]


def write(name, content, buffers=()):
    data = {"content": content, "buffers": [base64.b64encode(b).decode() for b in buffers]}
    (FOLDER / name).write_text(json.dumps(data, indent=1, ensure_ascii=True) + "\n")


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    info = {"model": "SmolLM2-135M-Instruct", "engine": "torch", "device": "cpu", "dtype": "bfloat16",
            "context_length": 8192, "prompt": "Why is the sky blue?",
            "params": {"temperature": 0.8, "top_k": 40, "top_p": 0.9, "min_p": 0.0, "repeat_penalty": 1.0, "seed": 3, "max_tokens": 64}}
    base = {"type": "update", "v": 1, "run": "r1"}
    write("update_start.json", {**base, "seq": 1, "info": info, "state": "prefilling", "prefill": {"done": 0, "total": 41, "reused": 0}, "notices": []})
    first, buffers = steps_block(steps()[:2], 0)
    write("update_steps.json", {**base, "seq": 2, "state": "running", "prefill": {"done": 41, "total": 41, "reused": 12}, "steps": first}, buffers)
    second, buffers = steps_block(steps()[2:], 2)
    finish = {"stop_reason": "stop", "stop_detail": "end token <|im_end|>", "completion_tokens": 4, "ttft_ms": 200.0, "tokens_per_second": 20.0}
    write("update_finish.json", {**base, "seq": 3, "state": "finished", "steps": second, "notices": ["The prompt was cut."], "finish": finish}, buffers)
    every, buffers = steps_block(steps(), 0)
    write("update_replay.json", {**base, "seq": 4, "info": info, "state": "finished", "prefill": {"done": 41, "total": 41, "reused": 12},
          "steps": every, "notices": ["The prompt was cut."], "finish": finish}, buffers)
    write("update_failure.json", {**base, "seq": 3, "state": "failed", "failure": {"message": "The model's forward raised RuntimeError: no memory.", "hint": "The next call reloads the model."}})
    write("ready.json", {"type": "ready", "v": 1, "run": "r1", "steps": 2})
    write("ready_empty.json", {"type": "ready", "v": 1, "run": None, "steps": 0})


if __name__ == "__main__":
    main()
