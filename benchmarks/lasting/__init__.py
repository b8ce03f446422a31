"""A run that lasts: ten runs with a checkpoint, over every source and sink, for an hour, each restarted ten times.

    python -m benchmarks.lasting [--hours 1] [--rate 100] [--restarts 10] [--keep FOLDER]

Real services are started on loopback (PostgreSQL, Redis, mosquitto, and a Kafka broker where ``make test-kafka`` has
fetched one); what is missing is named, and its runs are left out.  All sources give the same events, ``--rate`` a
second each.  In the first two thirds of the time each run is ended ``--restarts`` times, by SIGTERM and SIGKILL in
turn, and started again with the same command; in the last third nothing disturbs it.  Every minute ``/metrics`` of each
run is read.

It fails unless, at the end,

- every sink holds the matches that one run without interruption gives over the same events: each once where exactly
  once is promised, at least once elsewhere.  A WebSocket gives nothing again, so there only those matches must be there
  whose events came between the start of a connection and the last checkpoint before its end; none may be wrong;
- memory is flat: that of the last process of a run grows by less than 5 % (or 4 MiB) in the last three quarters of
  its life;
- goals are flat: their mean in the last third is at most a tenth above that in the first third (it is lower where a
  run has gone on to columns, which forget at once what rows forget from time to time);
- lag is flat: its median in the last third is below three seconds, and at most a second above that in the first third;
- checkpoints are flat: the last is at most a tenth larger than the largest of the first third.

The processor time of all runs, services and feeds together is printed as a share of a core.
"""
