"""The web layer: addresses, the gate to the network, robots, conditional requests, text, digests, sitemaps, feeds.

Protocol logic here is functions, generators and frozen values: time and randomness are arguments, what comes
from the network is hostile until parsed and bounded. Sockets are made in `egress.py` and nowhere else, requests
are sent by `transport.py` and nowhere else; a test holds both.
"""
