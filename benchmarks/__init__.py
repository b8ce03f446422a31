"""The measured workloads: each makes its own seeded data, checks what comes out and says how long it took.

``python -m benchmarks.engine`` measures the engine on the workloads of ``workloads/`` against hand-written loops of the
same logic; the other files are commands of their own.  May use every room of the product; nothing may use this one.
"""
