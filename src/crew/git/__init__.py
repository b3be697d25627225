"""The only git: one hardened door and what crew does through it."""
