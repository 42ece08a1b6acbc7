"""The names of actors in the audit log."""

from app.domain.principal import Principal


def describe_actor(principal: Principal) -> str:
    """Returns `attempt:ID`, `worker:ID`, `enrolment:ID`, `token:ID` or `user:ID`."""
    if principal.attempt_id is not None:
        return f"attempt:{principal.attempt_id}"
    if principal.worker_id is not None:
        return f"worker:{principal.worker_id}"
    if principal.enrolment_id is not None:
        return f"enrolment:{principal.enrolment_id}"
    return (
        f"token:{principal.token_id}"
        if principal.token_id is not None
        else f"user:{principal.user_id}"
    )
