"""The measured workloads: each makes its own seeded data, checks the answers and says how long it took.

``python -m benchmarks.engine`` measures the engine on the workloads of ``workloads/`` against hand-written loops of the
same logic; the other files are commands of their own.  They may use every package of the product; nothing may use them.
"""
