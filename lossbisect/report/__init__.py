"""Finished types to text, JSON, Markdown, pictures and pages. Nothing here decides anything."""
