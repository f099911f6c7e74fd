"""A table of internal and other addresses."""

from ipaddress import ip_address

import pytest

from huai_program.addresses import is_internal, is_local

LOCAL = """
0.0.0.0 0.1.2.3 127.0.0.1 127.9.9.9 169.254.169.254 224.0.0.1 239.255.255.255 240.0.0.1
255.255.255.255 :: ::1 fe80::1 febf::1 ff02::1
::127.0.0.1 ::ffff:127.0.0.1 ::ffff:0:127.0.0.1 64:ff9b::127.0.0.1 64:ff9b::a9fe:a9fe
2002:7f00:1:: 2002:a9fe:a9fe::1 2a00::5efe:127.0.0.1 2a00::200:5efe:127.0.0.1
"""
PRIVATE = """
10.0.0.1 100.64.0.1 100.127.255.255 172.16.0.1 172.31.255.255 192.0.0.8 192.0.2.1 192.88.99.1
192.168.1.1 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.7
64:ff9b:1::808:808 100::1 2001::1 2001:0:a00:1::808:808 2001:db8::1 3fff::1 5f00::1 fc00::1 fdff::1
fec0::1 feff::1 ::10.0.0.1 ::ffff:192.168.1.1 ::ffff:0:10.0.0.1 64:ff9b::10.0.0.1 2002:a00:1::1
2a00::5efe:10.0.0.1
"""
PUBLIC = """
1.1.1.1 8.8.8.8 9.255.255.255
11.0.0.1 100.63.255.255 100.128.0.1 128.0.0.1 172.15.255.255 172.32.0.1
192.167.255.255 192.169.0.1 198.17.255.255 198.20.0.1 223.255.255.255 2001:4860:4860::8888
2606:4700::1 ::ffff:8.8.8.8 64:ff9b::808:808 2002:808:808::1 2a00::5efe:8.8.8.8
"""


def test_those_of_this_machine_and_its_link(subtests: pytest.Subtests) -> None:
    for text in LOCAL.split():
        with subtests.test(text=text):
            assert is_local(ip_address(text))
            assert is_internal(ip_address(text))


def test_those_of_an_organisation(subtests: pytest.Subtests) -> None:
    for text in PRIVATE.split():
        with subtests.test(text=text):
            assert is_internal(ip_address(text))
            assert not is_local(ip_address(text))


def test_those_of_the_internet(subtests: pytest.Subtests) -> None:
    for text in PUBLIC.split():
        with subtests.test(text=text):
            assert not is_internal(ip_address(text))
