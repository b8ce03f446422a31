"""A run on several cores: other processes read a file ahead, or each takes its share of the events.

    file ───▶ processes that read ──▶ events ──▶ this process: engine ──▶ matches
    stream ─▶ this process:  own share ──▶ engine ──▶ matches ─┐
       └────▶ a forked one:  own share ──▶ engine ──▶ matches ─┴─▶ merged, step by step

Where matching is shared out, all processes take the same steps, and differ in the events that they give to their
engine: those of some keys (``etalis_compiler.shards``), or of some stretches of time (``etalis_compiler.reach``).
Nothing is pickled: what the processes begin with they have from the fork, and events and matches travel in Arrow's
format.
"""
