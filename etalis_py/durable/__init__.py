"""Runs that go on after their process has ended: a folder with all that another process needs.

    driver ──▶ keeper ──▶ places of the sources, snapshot of the engine, token of the sink ──▶ folder

``keeper`` decides when, and in which order; ``folder`` writes and reads checkpoints; ``disk`` is the file system;
``identity`` says whether a program, its sources and its sink are those of the folder.  This package may know
streams, connectors and events; it is given the engine and the driver.
"""
