"""The table of permissions: what each role, a server administrator and each scope permit."""

from collections.abc import Mapping
from typing import Final

from palestra.contract.names import Scope
from palestra.contract.permissions import Permission, Role

_VIEWER: Final = frozenset({Permission.PROJECT_READ})
_MEMBER: Final = _VIEWER | {Permission.RUN_SUBMIT, Permission.RUN_CONTROL_OWN}
_MAINTAINER: Final = _MEMBER | {
    Permission.RUN_CONTROL_ANY,
    Permission.PROJECT_SETTINGS,
    Permission.PROJECT_MEMBERS,
    Permission.PROJECT_CREDENTIALS,
    Permission.PROJECT_AUDIT,
}

ROLE_PERMISSIONS: Final[Mapping[Role, frozenset[Permission]]] = {
    Role.VIEWER: _VIEWER,
    Role.MEMBER: _MEMBER,
    Role.MAINTAINER: _MAINTAINER,
}
"""Permissions that a role gives in its project."""

ADMINISTRATOR_PERMISSIONS: Final = frozenset(
    {
        Permission.SERVER_USERS,
        Permission.SERVER_PROJECTS,
        Permission.SERVER_POOLS,
        Permission.SERVER_AUDIT,
        Permission.SERVER_CANCEL,
    }
)
"""Permissions of a server administrator, who reads no project without a membership."""

OF_NO_PROJECT: Final = ADMINISTRATOR_PERMISSIONS | {Permission.ACCOUNT}
"""Permissions that belong to no project."""

SCOPE_PERMISSIONS: Final[Mapping[Scope, frozenset[Permission]]] = {
    Scope.READ: frozenset({Permission.PROJECT_READ}),
    Scope.SUBMIT: frozenset(
        {Permission.RUN_SUBMIT, Permission.RUN_CONTROL_OWN, Permission.RUN_CONTROL_ANY}
    ),
    Scope.ADMIN: frozenset(Permission),
    Scope.WORKER: frozenset(),
}
"""Upper bound that a scope of a credential sets on its holder's permissions."""


def list_permitted(scopes: frozenset[Scope]) -> frozenset[Permission]:
    """Returns the permissions that a credential with these scopes can carry."""
    return frozenset[Permission]().union(*(SCOPE_PERMISSIONS[scope] for scope in scopes))
