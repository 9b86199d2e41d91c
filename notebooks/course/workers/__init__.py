"""What spawned ranks do for a notebook: a cell cannot be imported by the processes it starts, these files can."""
