"""Finding new pages and hearing of changes through hubs, feeds and sitemaps, which are polled when that is worth it."""
