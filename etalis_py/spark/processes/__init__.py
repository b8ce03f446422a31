"""Engine processes: they hold the live shards of an executor, each shard once, whichever Python worker gets its rows.

Spark gives a shard of a stream to any worker of its executor.  That worker (``worker_side``) sends the rows to the
process of the shard's partition, and starts that if it is not there (``starting``).  The process (``engine_process``)
runs the processor of ``shard.streaming`` as a worker would; where that one reads or writes the state of the shard, it
asks the worker, which has the connection to Spark (``messages``).  Nothing here knows what a shard is.
"""
