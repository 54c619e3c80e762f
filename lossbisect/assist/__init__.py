"""The training assistant: what is wrong with a set-up, what to move out of the way, and what goes together.

Facts are gathered at the edge (git, the file system, the trainer's interpreter), then judged by pure functions, one
module a family. The names live in the modules; nothing is imported here.
"""
