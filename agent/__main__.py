"""`python -m agent`."""

from agent.cli.main import main

if __name__ == "__main__":
    main()
