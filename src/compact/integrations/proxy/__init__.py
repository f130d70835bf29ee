"""`compact proxy`: keeps the sessions of agents whose loop nobody can edit inside their windows, on the way to the provider."""

from compact.integrations.proxy.serving import ProxyServer

__all__ = ["ProxyServer"]
