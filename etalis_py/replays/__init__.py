"""The worked examples of [EP]: a stock market, tsunami gauges and delivery agents, ready to run.

A replay brings events (made up from a seed, or read from real data), the rule programs and background knowledge that
the rules room ships, and tells and draws what was found.  This room may know events, stream errors and clocks; of the
engine it knows only what a match looks like, so that any engine can run a replay.
"""

from etalis_py.replays.delivery import replay_delivery
from etalis_py.replays.replay import Replay
from etalis_py.replays.stock import replay_stock
from etalis_py.replays.tsunami import replay_tsunami

__all__ = ["Replay", "replay_delivery", "replay_stock", "replay_tsunami"]
