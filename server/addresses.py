"""What a URL or an address tells of the way to it. Standard library only: hooks import it."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def is_http_url(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def is_https_or_loopback_http_url(url: str) -> bool:
    """https, or http to this machine."""
    parts = urlsplit(url)
    return is_http_url(url) and (parts.scheme == "https" or is_loopback(parts.hostname or ""))


def is_loopback(host: str) -> bool:
    """Whether a name or address, without a port, is this machine for sure."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
