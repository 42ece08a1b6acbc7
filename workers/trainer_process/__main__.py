"""python -m workers.trainer_process: see `workers.trainer_process.attempt`."""

import sys

from workers.trainer_process.attempt import main

if __name__ == "__main__":
    sys.exit(main())
