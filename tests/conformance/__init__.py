"""Conformance: what others have written down of SPARQL and of ETALIS, put to the engine."""
