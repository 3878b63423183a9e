"""The Model Context Protocol at `/mcp`: what agents can do here, through the official SDK."""
