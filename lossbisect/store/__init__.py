"""Finished runs, so that none is run twice.

Data goes one way: `key` says before a run what determines its result (`environment` looks at the interpreter and the
machine), `runner` asks `store` for it or runs it, `worth` decides whether the outcome is kept. `database` is the
schema, `files` a run's folder, `prune` what goes. The trainer's process has no part in it.
"""
