"""The command line: one file for each command, loaded only when it is asked for."""
