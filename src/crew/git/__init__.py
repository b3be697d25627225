"""All use of git: one hardened way to call it, and the operations built on that."""
