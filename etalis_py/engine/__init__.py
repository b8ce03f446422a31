"""What puts the rooms together: ``Program``, ``Engine``, ``run``, and what they are made of.

    text ──▶ program ──▶ rule_plans ──▶ stage_plans ──▶ engine ◀── driver ◀── stream
                                                           └──▶ matches

It may know the compiler, the kernel, the executors, the background and the streams; whoever asks or drives engines
(command line, Spark, containers, why-not) comes to it.
"""
