"""The one form of a fetch that `serve` answers from files, and the pack in its answer."""

from collections.abc import Iterable

from huai_schema.git.pktline import FLUSH_PACKET, packet, split


def encode_request(wanted: str, complete: Iterable[str], shallow: Iterable[str]) -> bytes:
    """Ask for the commit `wanted` without its history; those in `complete` are here."""
    capabilities = "side-band-64k thin-pack ofs-delta no-progress shallow agent=test"
    lines = (
        packet(f"want {wanted} {capabilities}\n".encode()),
        *(packet(f"shallow {commit}".encode()) for commit in sorted(shallow)),
        packet(b"deepen 1"),
        FLUSH_PACKET,
        *(packet(f"have {commit}\n".encode()) for commit in sorted(complete)),
        packet(b"done\n"),
    )
    return b"".join(lines)


def pack_of(answer: bytes) -> bytes:
    """The pack in the side-bands."""
    packets = [each for each in split(answer) if isinstance(each, bytes)]
    return b"".join(each[1:] for each in packets if each.startswith(b"\x01"))
