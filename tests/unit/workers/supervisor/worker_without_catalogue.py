"""The worker of `workers.host` with an empty catalogue.

A catalogue is made by a process that imports torch and builds every environment, for seconds.
"""

import sys
from pathlib import Path

from palestra.contract.catalogue import Catalogue
from workers.host import registration
from workers.host.worker import main


def make_no_catalogue(_: Path) -> Catalogue:
    return Catalogue()


registration.read_catalogue = make_no_catalogue

if __name__ == "__main__":
    sys.exit(main())
