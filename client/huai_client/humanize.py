"""Numbers of bytes for people."""

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def human(size: float) -> str:
    """Bytes for people: three digits or so and a binary unit."""
    for unit in _UNITS[:-1]:
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} {_UNITS[-1]}"
