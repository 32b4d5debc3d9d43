"""Rules of other crawlers as competitors, one file each, with their own parameters."""
