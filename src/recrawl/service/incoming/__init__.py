"""What others send: pings, signed hooks, WebSub. Each proves itself in its own way, and can only signal known pages."""
