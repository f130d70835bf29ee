"""Structure: masking the leaves of JSON text, Python data and messages by the names that they have."""
