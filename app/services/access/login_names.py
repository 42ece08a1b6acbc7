"""Login names as people type them."""

from app.domain.errors import ConflictError, InvalidError
from palestra.contract.names import slugify


def normalise_login_name(typed: str, *, pointer: str | None = None) -> tuple[str, str]:
    """Returns the login name made of a typed name, and the typed name if the two differ.

    Raises:
        InvalidError: `invalid_name` if it has no letter or digit of ASCII.
    """
    name = slugify(typed, 64, substitute="")
    if not name:
        raise InvalidError(
            "invalid_name",
            "A login name consists of ASCII letters, digits and hyphens, for example `grace-h`.",
            pointer=pointer,
        )
    return name, "" if typed == name else typed


def build_name_taken(pointer: str) -> ConflictError:
    """Returns the refusal of a login name that another user has."""
    return ConflictError(
        "name_taken", "Another user has this name. Choose another.", pointer=pointer
    )
