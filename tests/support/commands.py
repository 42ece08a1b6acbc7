"""The fixture type and the document that tests of the commands share."""

import json
from collections.abc import Callable

from tests.support import api_samples

RunCommand = Callable[..., tuple[int, str, str]]
"""Type of the fixture `palestra`: takes the arguments, returns exit code, stdout and stderr."""

DOCUMENT = json.dumps({"definition": api_samples.make_definition(), "options": {"seeds": [0]}})
"""The document that the fixture `peer` writes as `x.yaml`."""
