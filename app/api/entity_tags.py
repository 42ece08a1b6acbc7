"""Entity tags: whether a client has an answer already (RFC 9110, section 13.1.2)."""


def is_held(if_none_match: str | None, tag: str) -> bool:
    """Returns whether a request says that its client has the content with an entity tag.

    Args:
        if_none_match: The header `If-None-Match`.
        tag: The tag, in its quotes.
    """
    tags = [held.strip().removeprefix("W/") for held in (if_none_match or "").split(",")]
    return "*" in tags or tag in tags
