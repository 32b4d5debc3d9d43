"""Fetch one page: the IO-free flow, the egress gate, the connection and its bounds."""
