"""What askable does: load a site's content, understand a question, find, rank, answer, remember."""
