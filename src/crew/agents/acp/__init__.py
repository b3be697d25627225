"""The adapter of agents that speak the Agent Client Protocol."""
