"""What only notebook 27, Learning rates: groups and schedules, reads."""
