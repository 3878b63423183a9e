"""HTTP and the command line: nothing that the product does is decided here."""
