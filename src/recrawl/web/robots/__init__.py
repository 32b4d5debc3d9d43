"""robots.txt (RFC 9309): parse a file, match a URL, keep the answer."""
