"""Settings of the HTTP server: its address, who may use it and how much, and what makes an address safe."""

from __future__ import annotations

import ipaddress
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, field_validator
from pydantic_core import PydanticCustomError

from madeleine.server.settings.fields import Names

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")
Claim = Annotated[str, Field(min_length=1, max_length=200)]


class HttpSettings(BaseModel):
    http_host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    http_port: Annotated[int, Field(ge=0, le=65535)] = 8765
    """0: any free port."""
    public_url: str = ""
    """As clients write it, with the path; tokens are bound to it. Empty: made of host and port."""
    allowed_hosts: Names = ()
    """`Host` headers besides those of the loopback and of the public URL; `name:*` for any port."""
    allowed_origins: Names = ()
    """`Origin` headers besides those of the loopback, as in `https://app.example.org`."""

    oauth_issuer: str = ""
    oauth_jwks_url: str = ""
    """Empty: taken from the issuer's metadata."""
    oauth_audience: str = ""
    """Empty: the public URL."""
    oauth_being_claim: Claim = "sub"
    oauth_role_claim: Claim = "role"
    oauth_read_only_claim: Claim = "read_only"

    http_rate_per_minute: Annotated[int, Field(ge=1, le=1_000_000)] = 600
    """Requests of one token; as many may come at once."""
    http_max_body_bytes: Annotated[int, Field(ge=1_000, le=1_000_000_000)] = 4 * 1024 * 1024

    @field_validator("allowed_origins")
    @classmethod
    def _origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        for origin in origins:
            if not origin.startswith(("http://", "https://")) or origin.count("/") != 2:
                raise PydanticCustomError("origin", "write origins as in https://app.example.org, without a path")
        return origins

    @field_validator("public_url")
    @classmethod
    def _public(cls, url: str) -> str:
        if url and not (url.startswith(("http://", "https://")) and urlsplit(url).hostname):
            raise PydanticCustomError("public_url", "write it whole, as in https://memory.example.org/mcp")
        return url

    @field_validator("oauth_issuer", "oauth_jwks_url")
    @classmethod
    def _safe(cls, url: str) -> str:
        """Whoever can change the keys on their way can be anybody."""
        if url and not is_safe_url(url):
            raise PydanticCustomError("insecure_url", "it must begin with https:// (http:// for this machine only)")
        return url

    @property
    def resource(self) -> str:
        """The URL that tokens are bound to."""
        return self.public_url or f"http://{in_url(self.http_host)}:{self.http_port}/mcp"


def is_safe_url(url: str) -> bool:
    """https, or http to this machine."""
    parts = urlsplit(url)
    return bool(parts.hostname) and (
        parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
    )


def is_loopback(host: str) -> bool:
    """Whether a name or address, without a port, is this machine for sure."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def in_url(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
