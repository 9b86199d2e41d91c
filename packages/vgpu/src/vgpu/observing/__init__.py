"""What a run tells its author: a trace, a profile, misplaced results, and the end of a pytest session."""
