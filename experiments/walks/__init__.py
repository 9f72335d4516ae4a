"""People's walks, released by simulation: what the experiments `dphmm` and `location_sets` measure."""
