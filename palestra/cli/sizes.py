"""Bytes as people read them in tables."""


def format_bytes(number: float) -> str:
    """Returns bytes as a short text with a decimal unit."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1_000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1_000
    return f"{number:.1f} TB"
