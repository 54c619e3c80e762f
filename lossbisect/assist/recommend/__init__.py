"""Which recipe of Bridge to run, on which parallel sizes, and what it takes: read from the Bridge at hand."""

from lossbisect.assist.recommend.answer import Answer, Step, recommend
from lossbisect.assist.recommend.catalogue import list_recipes
from lossbisect.assist.recommend.shortest import Shortest, shortest_for_change
from lossbisect.assist.recommend.source import find_bridge
from lossbisect.assist.recommend.types import Goal, Question

__all__ = [
    "Answer",
    "Goal",
    "Question",
    "Shortest",
    "Step",
    "find_bridge",
    "list_recipes",
    "recommend",
    "shortest_for_change",
]
