"""Conversation to prompt text."""

from cartoolkit.chat.template import ChatTemplate, render_grounded, with_context

__all__ = ["ChatTemplate", "render_grounded", "with_context"]
