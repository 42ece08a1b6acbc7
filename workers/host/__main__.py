"""python -m workers.host: see `workers.host.worker`."""

import sys

from workers.host.worker import main

if __name__ == "__main__":
    sys.exit(main())
