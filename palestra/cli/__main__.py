"""`python -m palestra.cli`."""

import sys

from palestra.cli.main import main

sys.exit(main())
