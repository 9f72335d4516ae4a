"""Files: the only layer that opens them."""
