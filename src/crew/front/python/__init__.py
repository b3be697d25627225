"""The Python interface of crew."""
