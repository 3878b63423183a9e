"""Reading sources: pages, items, text, chunks; and storing them."""
