"""The page on which people sign in: also the answer to a browser that asks for a page without a session."""

from __future__ import annotations

PAGE = b"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Sign in - recrawl</title>
<link rel="stylesheet" href="/login.css">
<script src="/login.js" defer></script>
</head>
<body>
<main>
<h1>recrawl</h1>
<form id="sign-in" method="post" action="/login">
<label for="key">Token</label>
<input id="key" name="key" type="password" autocomplete="current-password" required autofocus>
<button>Sign in</button>
</form>
<p>A token is printed when the service is started for the first time; <code>recrawl token new</code> makes another.</p>
</main>
</body>
</html>
"""
SCRIPT = """\
"use strict";
const code = location.hash.slice(1);
if (code) {
  history.replaceState(null, "", location.pathname);
  document.getElementById("key").value = code;
  document.getElementById("sign-in").submit();
}
"""
STYLE = """\
body { font: 16px/1.5 system-ui, sans-serif; display: grid; place-items: center; min-height: 90vh; margin: 1rem; }
main { max-width: 24rem; }
form { display: grid; gap: .5rem; }
input, button { font: inherit; padding: .5rem; }
"""
