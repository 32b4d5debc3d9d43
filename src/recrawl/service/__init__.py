"""The tracker over HTTP: an API, a dashboard and metrics, on loopback unless told otherwise."""
