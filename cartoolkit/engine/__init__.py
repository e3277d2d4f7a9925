"""Tokens to logits to a token: decoders, the sampler, the loop, sessions."""

from cartoolkit.engine.decoder import Decoder
from cartoolkit.engine.engine import Engine
from cartoolkit.engine.loading import load
from cartoolkit.engine.result import Result, Usage
from cartoolkit.engine.session import Session

__all__ = ["Decoder", "Engine", "Result", "Session", "Usage", "load"]
