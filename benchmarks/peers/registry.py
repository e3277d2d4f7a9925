"""Each peer: what it imports, how it loads the default model, and how it decodes n tokens.

A run decodes exactly `tokens` tokens after `ids` from an empty cache and returns the clock at each. All
peers are greedy, the cheapest they can be; ours inspects every token all the same (20 candidates, entropy,
raw and processed distribution). Ours is measured once more with its default sampling.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import itertools
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., list[float]]

THREADS = int(os.environ.get("OMP_NUM_THREADS", "0")) or len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class Peer:
    """One program to compare."""

    modules: tuple[str, ...]
    distributions: tuple[str, ...]
    load: Callable[[], Run]

    def imports(self) -> None:
        for module in self.modules:
            importlib.import_module(module)

    def versions(self) -> dict[str, str]:
        return {name: importlib.metadata.version(name) for name in self.distributions}


def _folder() -> str:
    from cartoolkit.models import resolve

    return str(resolve(None, formats=("safetensors",), progress=False).path)


def _gguf_file() -> str:
    from cartoolkit.models import resolve

    return str(resolve(None, formats=("gguf",), progress=False).path)


def _transformers() -> Run:
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.generation.streamers import BaseStreamer

    model = AutoModelForCausalLM.from_pretrained(_folder(), dtype=torch.bfloat16).eval()

    class Stamps(BaseStreamer):
        """Notes when each token arrives; does nothing else."""

        def __init__(self) -> None:
            self.times: list[float] = []

        def put(self, value: torch.Tensor) -> None:
            if value.dim() == 1:  # the first call hands over the prompt
                self.times.append(time.perf_counter())

        def end(self) -> None:
            """Nothing to finish."""

    def run(ids: list[int], tokens: int) -> list[float]:
        stamps = Stamps()
        model.generate(
            torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long), do_sample=False,
            max_new_tokens=tokens, min_new_tokens=tokens, streamer=stamps, pad_token_id=0,
        )  # fmt: skip
        return stamps.times

    return run


def _mlx_lm() -> Run:
    import mlx_lm

    model, tokenizer = mlx_lm.load(_folder())
    tokenizer.eos_token_ids = set()

    def run(ids: list[int], tokens: int) -> list[float]:
        return [time.perf_counter() for _ in mlx_lm.stream_generate(model, tokenizer, ids, max_tokens=tokens)]

    return run


def _llama_cpp() -> Run:
    import llama_cpp

    model = llama_cpp.Llama(_gguf_file(), n_ctx=2048, n_threads=THREADS, verbose=False)

    def run(ids: list[int], tokens: int) -> list[float]:
        model.reset()
        generated = model.generate(ids, temp=0.0, reset=True)
        return [time.perf_counter() for _ in itertools.islice(generated, tokens)]

    return run


def _llama_cpp_logprobs() -> Run:
    import llama_cpp

    model = llama_cpp.Llama(_gguf_file(), n_ctx=2048, n_threads=THREADS, verbose=False, logits_all=True)
    # The completion API ends at the model's end token; without one it goes on as the others do.
    bias = {str(model.token_eos()): -100.0}

    def run(ids: list[int], tokens: int) -> list[float]:
        model.reset()
        chunks = model.create_completion(
            ids, max_tokens=tokens, temperature=0.0, logprobs=20, stream=True, logit_bias=bias
        )
        stamps: list[float] = []
        for chunk in chunks:
            said = chunk["choices"][0]["logprobs"]
            stamps += [time.perf_counter()] * (len(said["tokens"]) if said else 0)
        return stamps

    return run


def _ours(**settings: Any) -> Callable[[], Run]:  # noqa: ANN401
    sampling = settings.pop("sampling", {"temperature": 0})

    def load() -> Run:
        import cartoolkit as ct
        from cartoolkit.engine.loop import decode
        from cartoolkit.requests import GenerateParams

        engine = ct.load(quiet=True, **settings)

        def run(ids: list[int], tokens: int) -> list[float]:
            # The loop itself, on the engine's own thread, as a session drives it.
            params = GenerateParams(max_tokens=tokens, ignore_eos=True, **sampling)

            def work() -> list[float]:
                engine.decoder.clear_kv_cache()
                steps = (
                    step
                    for event in decode(engine.decoder, ids, params, seed=0)
                    for step in getattr(event, "steps", ())
                )
                return [time.perf_counter() for _ in steps]

            return engine._worker.run(work)  # noqa: SLF001 - a session brings a prompt of its own

        return run

    return load


_TORCH = ("torch", "transformers")
_MLX = ("mlx.core", "mlx_lm")
_BLIND = {"temperature": 0, "inspect": False}
PEERS = {
    "transformers.generate bf16": Peer(_TORCH, ("torch", "transformers"), _transformers),
    "cartoolkit torch bf16": Peer(
        ("cartoolkit", *_TORCH), ("torch",), _ours(engine="torch", dtype="bfloat16")
    ),
    "cartoolkit torch bf16, blind": Peer(
        ("cartoolkit", *_TORCH), ("torch",), _ours(engine="torch", dtype="bfloat16", sampling=_BLIND)
    ),
    "cartoolkit torch int8": Peer(
        ("cartoolkit", *_TORCH), ("torch",), _ours(engine="torch", dtype="bfloat16", quantize="int8")
    ),
    "llama-cpp-python": Peer(("llama_cpp",), ("llama-cpp-python",), _llama_cpp),
    "llama-cpp-python logprobs=20": Peer(("llama_cpp",), ("llama-cpp-python",), _llama_cpp_logprobs),
    "cartoolkit gguf": Peer(("cartoolkit", "llama_cpp"), ("llama-cpp-python",), _ours(engine="gguf")),
    "cartoolkit gguf, sampling": Peer(
        ("cartoolkit", "llama_cpp"), ("llama-cpp-python",), _ours(engine="gguf", sampling={})
    ),
    "cartoolkit gguf, blind": Peer(
        ("cartoolkit", "llama_cpp"), ("llama-cpp-python",), _ours(engine="gguf", sampling=_BLIND)
    ),
    "mlx_lm.stream_generate": Peer(_MLX, ("mlx", "mlx-lm"), _mlx_lm),
    "cartoolkit mlx": Peer(("cartoolkit", *_MLX), ("mlx",), _ours(engine="mlx")),
}
