"""Where events go: each sink reads the change log from its own cursor, at its own pace. To add one, see `sink.py`."""
