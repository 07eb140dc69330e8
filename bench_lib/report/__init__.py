"""What pages are made of: cells, tables, figures, cards, sections, HTML that needs no network."""
