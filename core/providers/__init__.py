"""The providers' table."""
