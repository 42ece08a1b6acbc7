from tests.unit.workers.rl.agents.conftest import libraries as libraries
from tests.unit.workers.rl.agents.conftest import traces as traces
