"""Fixtures that run the application in the test's process, once per kind of database."""

from tests.app.api.conftest import api_postgres as api_postgres
from tests.app.api.conftest import module_database_url as module_database_url
from tests.app.api.conftest import shared as shared
