"""Whose random words a test draws: none, replayed ones, or the system's (`guard`); 200 runs of the last (`alone`)."""
