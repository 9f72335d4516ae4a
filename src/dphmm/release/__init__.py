"""Releases of many subjects, as tables and as streams, and the smoothing of released rows."""
