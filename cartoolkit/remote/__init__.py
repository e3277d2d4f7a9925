"""Models on servers: engines elsewhere, behind the same sessions, steps and traces as those that run here.

Any server that speaks OpenAI's chat completions will do: OpenAI itself, vLLM, Ollama, LM Studio, the servers
of llama.cpp and mlx-lm. The openai library is imported when the first of them is connected to.
"""

from cartoolkit.remote.bills import usd_of
from cartoolkit.remote.keys import why_unusable
from cartoolkit.remote.remote_engine import RemoteEngine, connect

__all__ = ["RemoteEngine", "connect", "usd_of", "why_unusable"]
