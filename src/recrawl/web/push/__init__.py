"""POST out: WebSub subscriptions, IndexNow and signed webhooks."""
