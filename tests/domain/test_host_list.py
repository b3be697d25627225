"""The list of hosts: what its entries allow, and which texts are none."""

import pytest

from crew.domain.kernel.host_list import address_of, host_list, is_public, plain_name

LISTED = host_list(
    ("api.example.com", "*.npm.org:443", "127.0.0.1:8080", "10.0.0.5", "[2606:4700::11]:22")
)


@pytest.mark.parametrize(
    ("name", "port", "is_allowed"),
    [
        ("api.example.com", 443, True),
        ("API.Example.COM.", 80, True),
        ("api.example.com", 22, False),
        ("example.com", 443, False),
        ("x.api.example.com", 443, False),
        ("notapi.example.com", 443, False),
        ("registry.npm.org", 443, True),
        ("a.b.npm.org", 443, True),
        ("registry.npm.org", 80, False),
        ("npm.org", 443, False),
        ("evilnpm.org", 443, False),
        ("127.0.0.1", 8080, True),
        ("localhost", 8080, True),
        ("::ffff:127.0.0.1", 8080, True),
        ("127.0.0.1", 8081, False),
        ("127.0.0.2", 8080, False),
        ("127.1", 8080, False),
        ("10.0.0.5", 80, True),
        ("10.0.0.6", 80, False),
        ("[2606:4700:0::11]", 22, True),
        ("2606:4700::12", 22, False),
    ],
)
def test_a_host_is_allowed_by_its_name_and_port(name, port, is_allowed):
    assert LISTED.allows(name, port) is is_allowed


@pytest.mark.parametrize(
    ("address", "port", "is_allowed"),
    [
        ("93.184.216.34", 443, True),
        ("2606:4700::12", 443, True),
        ("127.0.0.1", 8080, True),
        ("127.0.0.1", 443, False),
        ("10.0.0.5", 443, True),
        ("10.0.0.6", 443, False),
        ("169.254.169.254", 80, False),
        ("fe80::1", 80, False),
        ("not an address", 80, False),
    ],
)
def test_a_name_may_lead_to_the_internet_or_to_a_listed_address(address, port, is_allowed):
    assert LISTED.allows_address(address, port) is is_allowed


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0"),
        *("100.64.0.1", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fd00::1"),
        *("::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a00:1", "2002:7f00:1::", "ff02::1"),
    ],
)
def test_addresses_around_this_machine_are_not_public(address):
    assert not is_public(address_of(address))


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "2606:4700::1111", "64:ff9b::808:808", "2002:808:808::"]
)
def test_addresses_of_the_internet_are_public(address):
    assert is_public(address_of(address))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        *((text, "without a scheme and a path") for text in ("https://x.org", "x.org/a", "a b")),
        *((text, "without a scheme and a path") for text in ("", "me@x.org", "x.org:y")),
        ("::1", "in brackets"),
        *((text, "is not a host") for text in ("*", "*:443", "a.*.b", "a..b", "-a.org", ".a")),
        *((text, "is not a host") for text in ("127.1", "0x7f.1", "2130706433", "ü.org")),
        (f"{'a' * 60}." * 4 + "a" * 10, "is not a host"),
        *((text, "no port from 1 to 65535") for text in ("x.org:0", "x.org:65536")),
        *((text, "is not the address of a host") for text in ("0.0.0.0:80", "[::]:80")),
        *((text, "write a port of it") for text in ("127.0.0.1", "localhost", "[::1]:80")),
        *((text, "write a port of it from 1024") for text in ("127.0.0.2:80", "127.0.0.1:1023")),
    ],
)
def test_what_is_no_entry_is_refused_with_a_reason(text, words):
    with pytest.raises(ValueError, match=words):
        host_list(("x.org", text))


def test_the_largest_port_and_the_longest_name_are_allowed():
    longest = ".".join(("a" * 63, "b" * 63, "c" * 63, "d" * 61))
    assert host_list((f"{longest}:65535",)).allows(longest, 65535)


def test_the_ports_of_this_machine():
    assert LISTED.own_ports == (8080,)
    assert host_list(("localhost:1024", "x.org", "127.0.0.1:2000")).own_ports == (1024, 2000)


def test_a_name_has_one_form():
    assert [plain_name(one) for one in ("X.org.", "[::1]", "LOCALHOST", "::ffff:1.2.3.4")] == [
        *("x.org", "::1", "127.0.0.1", "1.2.3.4")
    ]
