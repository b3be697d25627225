"""Watches open terminals: what each takes now, and which ended without a report."""
