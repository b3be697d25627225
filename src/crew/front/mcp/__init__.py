"""The tools that agents reach over MCP, by HTTP in the runner or by `crew mcp` over stdio."""
