"""Events: the items of a stream, how they are made by hand, and what may be in them.

Every room may know it.  It knows the spellings of terms and times, which it takes from ``streams``.
"""

from etalis_py.events.item import SOURCE_ORDER, Dated, Event, Retraction, Triple, UnexpectedRetraction
from etalis_py.events.making import event

__all__ = ["SOURCE_ORDER", "Dated", "Event", "Retraction", "Triple", "UnexpectedRetraction", "event"]
