"""What is sent to ask for one commit (gitprotocol-pack(5), gitprotocol-http(5)).

Pure.  The whole conversation in one request, since both sides' states are known: protocol
version 0 as it is spoken over HTTP, which every git server understands.
Rule: clients in the same state send the same bytes, so that a server can answer the
second one from memory.
"""

from collections.abc import Iterable

from huai_client.metadata.git.packets import FLUSH, packet

_CAPABILITIES = (
    "side-band-64k",  # errors can be told from data
    "thin-pack",  # deltas against what is here already
    "ofs-delta",  # bases inside of the pack are named by a few bytes
    "no-progress",
    "shallow",
    "agent=huai-client",
)


def encode_request(wanted: str, complete: Iterable[str], shallow: Iterable[str]) -> bytes:
    """Ask for the commit `wanted` without its history.

    `complete`: commits of which all objects but those of their history are here; `shallow`:
    those of them whose history is not.  All are hex ids.
    """
    return b"".join(
        (
            packet(f"want {wanted} {' '.join(_CAPABILITIES)}\n".encode()),
            *(packet(f"shallow {commit}".encode()) for commit in sorted(shallow)),
            packet(b"deepen 1"),
            FLUSH,
            *(packet(f"have {commit}\n".encode()) for commit in sorted(complete)),
            packet(b"done\n"),
        )
    )
