"""The tools that agents use over MCP, by HTTP in the runner or by `crew mcp` over stdio."""
