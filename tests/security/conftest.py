"""Fixtures that run the application in the test's process, once per kind of database."""

from tests.app.api.conftest import shared as shared
