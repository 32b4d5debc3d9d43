"""The policy `price`: queues of waiting pages, the auction that sells crawls, and the price that follows it."""
