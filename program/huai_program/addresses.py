"""Internal addresses, to which an outsider must not direct a program of this network.

Pure.  Lists networks by IANA's registries of special-purpose addresses: the set that `ipaddress`
calls global differs between versions of Python, and ignores IPv6 addresses that embed one of IPv4.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address

LOCAL = (
    IPv4Network("0.0.0.0/8"),
    IPv4Network("127.0.0.0/8"),
    IPv4Network("169.254.0.0/16"),
    IPv4Network("224.0.0.0/4"),
    IPv4Network("240.0.0.0/4"),
    IPv6Network("::/128"),
    IPv6Network("::1/128"),
    IPv6Network("fe80::/10"),
    IPv6Network("ff00::/8"),
)
"""The networks of this machine and its link, multicast and reserved ones."""
PRIVATE = (
    IPv4Network("10.0.0.0/8"),
    IPv4Network("100.64.0.0/10"),
    IPv4Network("172.16.0.0/12"),
    IPv4Network("192.0.0.0/24"),
    IPv4Network("192.0.2.0/24"),
    IPv4Network("192.88.99.0/24"),
    IPv4Network("192.168.0.0/16"),
    IPv4Network("198.18.0.0/15"),
    IPv4Network("198.51.100.0/24"),
    IPv4Network("203.0.113.0/24"),
    IPv6Network("64:ff9b:1::/48"),  # NAT64 of this network's own
    IPv6Network("100::/64"),
    IPv6Network("2001::/23"),  # Teredo among others
    IPv6Network("2001:db8::/32"),
    IPv6Network("3fff::/20"),
    IPv6Network("5f00::/16"),
    IPv6Network("fc00::/7"),
    IPv6Network("fec0::/10"),
)
"""Private networks, and networks that are not routed."""
_EMBEDDING = (
    (IPv6Network("::/96"), 0),  # IPv4-compatible
    (IPv6Network("::ffff:0:0/96"), 0),  # IPv4-mapped
    (IPv6Network("::ffff:0:0:0/96"), 0),  # IPv4-translated
    (IPv6Network("64:ff9b::/96"), 0),  # NAT64
    (IPv6Network("2002::/16"), 80),  # 6to4
)
"""IPv6 networks whose addresses embed an IPv4 address, and the number of bits after it."""
_ISATAP = 0x5EFE
_ISATAP_BIT = 0x0200_0000
"""The bit of the interface identifier that marks a public IPv4 address (RFC 5214)."""
_IPV4_BITS = 32


def is_internal(address: Address) -> bool:
    """Return True if `address`, or an IPv4 address in it, is in `LOCAL` or `PRIVATE`."""
    return any(form in network for form in forms(address) for network in (*LOCAL, *PRIVATE))


def is_local(address: Address) -> bool:
    """Return True if `address`, or an IPv4 address in it, is in `LOCAL`."""
    return any(form in network for form in forms(address) for network in LOCAL)


def forms(address: Address) -> tuple[Address, ...]:
    """Return `address`, and the IPv4 addresses that it embeds."""
    if isinstance(address, IPv4Address):
        return (address,)
    value = int(address)
    embedded = [bits for network, bits in _EMBEDDING if address in network]
    if (value >> _IPV4_BITS) & 0xFFFF_FFFF in (_ISATAP, _ISATAP | _ISATAP_BIT):
        embedded.append(0)
    return (address, *(IPv4Address((value >> bits) & 0xFFFF_FFFF) for bits in embedded))
