"""The outside world, played by servers on loopback."""
