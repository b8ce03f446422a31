"""One file per workload: its data, its query, the hand-written loop of the same logic, and the bar."""

from benchmarks.workloads import (
    w1_pairs,
    w1r_pairs_at_random,
    w2_stock,
    w2u_stock_unrestricted,
    w3_chain,
    w4_rising,
    w5_window_sums,
    w6_idle_goals,
    w7_next,
    w8_absence,
    w9_repeat,
    w10_records,
    w11_reference,
    w12_sessions,
    w13_throttle,
    w14_numbered,
)

WORKLOADS = (
    w1_pairs.WORKLOAD,
    w1r_pairs_at_random.WORKLOAD,
    w2_stock.WORKLOAD,
    w2u_stock_unrestricted.WORKLOAD,
    w3_chain.WORKLOAD,
    w4_rising.WORKLOAD,
    *w5_window_sums.WORKLOADS,
    w6_idle_goals.WORKLOAD,
    w7_next.WORKLOAD,
    w8_absence.WORKLOAD,
    w9_repeat.WORKLOAD,
    *w10_records.WORKLOADS,
    w11_reference.WORKLOAD,
    w12_sessions.WORKLOAD,
    w13_throttle.WORKLOAD,
    w14_numbered.WORKLOAD,
)
