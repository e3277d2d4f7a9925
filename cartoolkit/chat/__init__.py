"""Conversation to prompt text."""

from cartoolkit.chat.template import ChatTemplate, with_context

__all__ = ["ChatTemplate", "with_context"]
