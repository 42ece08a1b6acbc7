from tests.unit.workers.rl.agents.conftest import libraries as libraries
from tests.unit.workers.rl.agents.conftest import traced_examples as traced_examples
