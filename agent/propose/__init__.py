"""WHAT to run next: a pure function of the closed trials, the trials in flight, and the study's seed."""
