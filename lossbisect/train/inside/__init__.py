"""What runs inside the trainer's process, on every lane: the launcher, the provenance line, the recorder.

Standard library only at import, and nothing here may import polars, click or another dependency of the tool: the
trainer's interpreter need not have them.
"""
