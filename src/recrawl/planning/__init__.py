"""Optimal crawl rates under a budget, what they cost and buy, and schedules that follow them."""
