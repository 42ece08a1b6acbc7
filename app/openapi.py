"""Prints the OpenAPI document: `python -m app.openapi`."""

import json
import sys

from app.main import create_app
from app.settings import Settings


def main() -> None:
    """Writes the document to standard output."""
    json.dump(create_app(Settings()).openapi(), sys.stdout, indent=2, sort_keys=True)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
