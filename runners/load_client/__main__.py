import sys

from runners.load_client.process import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
