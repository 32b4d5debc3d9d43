"""Read one body: charset, text, metadata, links, challenge pages and missing pages."""
