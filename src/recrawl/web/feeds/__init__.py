"""Sitemaps and feeds, and where a page names them."""
