"""Calls about persons: their account, their credentials, invitations, memberships."""

from tests.app.api.audited.call import IN_PROJECT, AuditedCall

ACCOUNT = (
    AuditedCall(
        route="PATCH /account", action="user.change", about="{me}", body={"email": "a@b.cd"}
    ),
    AuditedCall(
        route="POST /session:redeem",
        action="login.open",
        about="{login}",
        who="anonymous",
        body={"code": "{code}"},
    ),
    AuditedCall(
        route="PUT /account/password",
        action="password.set",
        about="{me}",
        who="browser",
        body={"password": "{password}"},
    ),
    AuditedCall(
        route="POST /session",
        action="login.open",
        about="{login}",
        who="anonymous",
        body={"user": "admin", "password": "{password}"},
    ),
    AuditedCall(
        route="DELETE /account/sessions/{session_id}",
        action="login.close",
        about="{login}",
        at={"session_id": "{login}"},
    ),
    AuditedCall(route="DELETE /session", action="login.close", about="{browser}", who="browser"),
    AuditedCall(route="POST /account:sign-out", action="user.sign_out", about="{me}"),
)
TOKENS = (
    AuditedCall(
        route="POST /tokens",
        action="token.create",
        about="{token_id}",
        body={"name": "t", "scopes": ["read"], "project": "default"},
        keeps={"token_id": "id"},
        **IN_PROJECT,
    ),
    AuditedCall(
        route="POST /tokens/{token_id}:rotate",
        action="token.rotate",
        about="{token_id}",
        body={},
        **IN_PROJECT,
    ),
    AuditedCall(
        route="DELETE /tokens/{token_id}", action="token.revoke", about="{token_id}", **IN_PROJECT
    ),
    AuditedCall(
        route="POST /projects/{project}/service-accounts",
        action="service_account.create",
        about="{robot}",
        who="maintainer",
        body={"name": "robot"},
        keeps={"robot": "user_id"},
        **IN_PROJECT,
    ),
    AuditedCall(
        route="POST /projects/{project}/service-accounts/{name}/tokens",
        action="token.create",
        about="{token_id}",
        who="maintainer",
        at={"name": "robot"},
        body={"name": "t", "scopes": ["read"]},
        keeps={"token_id": "id"},
        **IN_PROJECT,
    ),
    AuditedCall(
        route="DELETE /projects/{project}/service-accounts/{name}",
        action="service_account.delete",
        about="{robot}",
        who="maintainer",
        at={"name": "robot"},
        **IN_PROJECT,
    ),
)
_PERSON = {"user_id": "{person}"}
PEOPLE = (
    AuditedCall(
        route="POST /users:invite",
        action="invitation.create",
        about="{invitation_id}",
        body={"invitations": [{"name": "new"}]},
        keeps={"invitation_id": "items.0.id"},
    ),
    AuditedCall(
        route="DELETE /invitations/{invitation_id}",
        action="invitation.revoke",
        about="{invitation_id}",
    ),
    *(
        AuditedCall(route=route, action=action, about="{person}", at=_PERSON, body=body)
        for route, action, body in (
            ("PATCH /users/{user_id}", "user.change", {"is_admin": True}),
            ("POST /users/{user_id}:disable", "user.disable", {}),
            ("POST /users/{user_id}:enable", "user.enable", None),
            ("POST /users/{user_id}:reset-password", "link.create", None),
            ("POST /users/{user_id}:sign-out", "user.sign_out", None),
        )
    ),
    AuditedCall(
        route="PUT /projects/{slug}/members/{user}",
        action="membership.create",
        about="{person}",
        who="maintainer",
        at={"slug": "default", "user": "leaver"},
        body={"role": "viewer"},
        **IN_PROJECT,
    ),
    AuditedCall(
        route="DELETE /projects/{slug}/members/{user}",
        action="membership.delete",
        about="{person}",
        who="maintainer",
        at={"slug": "default", "user": "leaver"},
        **IN_PROJECT,
    ),
    AuditedCall(
        route="DELETE /users/{user_id}", action="user.delete", about="{person}", at=_PERSON
    ),
)
