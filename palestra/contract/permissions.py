"""Roles and permissions of the API; `app.domain.permissions` maps roles to permissions."""

from enum import StrEnum


class Role(StrEnum):
    """A user's role in a project."""

    VIEWER = "viewer"
    """Reads."""
    MEMBER = "member"
    """Submits, and acts on what it submitted."""
    MAINTAINER = "maintainer"
    """Acts on all runs of the project, and manages its members and settings."""


class Permission(StrEnum):
    """A permission that routes require. Permissions of a project hold in the object's project."""

    PROJECT_READ = "project.read"
    """Read experiments, runs, jobs, curves and artifacts."""
    RUN_SUBMIT = "run.submit"
    """Submit experiments, and jobs on runs."""
    RUN_CONTROL_OWN = "run.control_own"
    """Pause, resume, cancel, retry and archive what the caller submitted."""
    RUN_CONTROL_ANY = "run.control_any"
    """The same for what other users submitted."""
    PROJECT_SETTINGS = "project.settings"
    """Rename, describe, archive and delete a project."""
    PROJECT_MEMBERS = "project.members"
    """Add and remove members, and change their roles."""
    PROJECT_CREDENTIALS = "project.credentials"
    """Make service accounts, and see and revoke all tokens of the project."""
    PROJECT_AUDIT = "project.audit"
    """Read the project's part of the audit log."""

    ACCOUNT = "account"
    """Manage one's own password, sessions and tokens."""

    SERVER_USERS = "server.users"
    """Invite, disable, enable and delete users."""
    SERVER_PROJECTS = "server.projects"
    """Create and delete projects, restore deleted ones, and set their limits."""
    SERVER_POOLS = "server.pools"
    """Create and pause pools, admit projects to them, and manage their workers."""
    SERVER_AUDIT = "server.audit"
    """Read the whole audit log."""
    SERVER_CANCEL = "server.cancel"
    """Cancel a job of any project, without reading it."""
