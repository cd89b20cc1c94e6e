"""Settings of the HTTP server: its address, who may use it and how much, and what makes an address safe."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from madeleine.server.addresses import is_http_url, is_https_or_loopback_http_url
from madeleine.server.settings.fields import CommaSeparatedNames, valid_if_set_validator

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")


def are_http_origins(origins: tuple[str, ...]) -> bool:
    return all(origin.startswith(("http://", "https://")) and origin.count("/") == 2 for origin in origins)


def bracket_ipv6_host(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


NonEmptyClaimName = Annotated[str, Field(min_length=1, max_length=200)]
SafeUrl = Annotated[
    str,
    valid_if_set_validator(
        is_https_or_loopback_http_url, "it must begin with https:// (http:// for this machine only)"
    ),
]
"""Whoever can change the keys of tokens on their way can be anybody."""


class HttpSettings(BaseModel):
    http_host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    http_port: Annotated[int, Field(ge=0, le=65535)] = 8765
    """0: any free port."""
    public_url: Annotated[
        str, valid_if_set_validator(is_http_url, "write it whole, as in https://memory.example.org/mcp")
    ] = ""
    """As clients write it, with the path; tokens are bound to it. Empty: made of host and port."""
    allowed_hosts: CommaSeparatedNames = ()
    """`Host` headers besides those of the loopback and of the public URL; `name:*` for any port."""
    allowed_origins: Annotated[
        CommaSeparatedNames,
        valid_if_set_validator(are_http_origins, "write origins as in https://app.example.org, without a path"),
    ] = ()
    """`Origin` headers besides those of the loopback, as in `https://app.example.org`."""

    oauth_issuer: SafeUrl = ""
    oauth_jwks_url: SafeUrl = ""
    """Empty: taken from the issuer's metadata."""
    oauth_audience: str = ""
    """Empty: the public URL."""
    oauth_token_types: CommaSeparatedNames = ("at+jwt",)
    """Accepted `typ` headers. RFC 9068 demands this one; an issuer that does not follow it writes `JWT`."""
    oauth_being_claim: NonEmptyClaimName = "sub"
    oauth_role_claim: NonEmptyClaimName = "role"
    oauth_read_only_claim: NonEmptyClaimName = "read_only"

    http_rate_per_minute: Annotated[int, Field(ge=1, le=1_000_000)] = 600
    """Requests of one token; as many may come at once."""
    http_max_body_bytes: Annotated[int, Field(ge=1_000, le=1_000_000_000)] = 1024 * 1024

    @property
    def oauth_resource_url(self) -> str:
        """The URL that tokens are bound to."""
        return self.public_url or f"http://{bracket_ipv6_host(self.http_host)}:{self.http_port}/mcp"
