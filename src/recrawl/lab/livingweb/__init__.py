"""Webs on loopback to try a crawler on: the living one changes by seeded laws, the hostile one misbehaves as scripted.

Servers here listen on 127.0.0.1 and go nowhere. A crawler reaches them as any private network: by a named opt-in with
its port and a map of host names, such as `allow = {"hostile": "127.0.0.1/32:PORT"}` and
`resolve = {"*.hostile.test": "127.0.0.1"}`.
"""
