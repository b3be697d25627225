"""The proxy that connects programs without network to the hosts of a list, and to no other."""
