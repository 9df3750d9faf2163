"""What runs inside the user's environment, not in ours: a script of the standard library only."""
