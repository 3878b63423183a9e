"""What is measured, one command each."""
