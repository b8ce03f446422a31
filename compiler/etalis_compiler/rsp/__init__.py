"""RSP-QL, RSEP-QL and the languages they cover: from the syntax of a windowed query to its plan.

A plan says which windows stand on which streams, what is evaluated over their contents, at which times, and how the
answers become a stream ([RSPQL] Definition 11: Q = (SE, SDS, ET, QF)).  This room knows the syntax and the algebra; the
contents of windows, and time itself, are the run time's business.

    ast.Query ──lower──▶ WindowPlan ──with_preset──▶ WindowPlan
"""

from ..ast.query_kinds import is_windowed
from .lowering import plan_fact, plan_query
from .network import (
    Circle,
    Entails,
    Unit,
    WindowStage,
    readers_of,
    stages_of,
    unit_of_fact,
    unit_of_plan,
    unit_of_rule,
)
from .plan import (
    Basic,
    Count,
    Current,
    EventExpr,
    Fact,
    First,
    Identity,
    Interval,
    Landmark,
    Last,
    MatchPlan,
    Now,
    Sequence,
    Shape,
    Sliding,
    Strategy,
    WindowPlan,
    WindowUse,
)
from .presets import PRESETS, with_preset

__all__ = [
    "PRESETS",
    "Basic",
    "Circle",
    "Count",
    "Current",
    "Entails",
    "EventExpr",
    "Fact",
    "First",
    "Identity",
    "Interval",
    "Landmark",
    "Last",
    "MatchPlan",
    "Now",
    "Sequence",
    "Shape",
    "Sliding",
    "Strategy",
    "Unit",
    "WindowPlan",
    "WindowStage",
    "WindowUse",
    "is_windowed",
    "plan_fact",
    "plan_query",
    "readers_of",
    "stages_of",
    "unit_of_fact",
    "unit_of_plan",
    "unit_of_rule",
    "with_preset",
]
