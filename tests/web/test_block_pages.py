"""Challenges and refusals sent with status 200 are known, and pages that only speak of them are not."""

from __future__ import annotations

import pytest

from recrawl.web.content.challenge import MOST_WORDS, block_reason
from recrawl.web.content.page import read_page

PROSE = "The history of the web is a history of people who wanted to read what others had written. " * 20

BLOCKED = {
    "cloudflare interstitial": "<html><head><title>Just a moment...</title><meta name=robots content=noindex,nofollow>"
    "</head><body><div class=main-wrapper><noscript>Enable JavaScript and cookies to continue</noscript></div>"
    "<script>(function(){window._cf_chl_opt={cvId:'3',cZone:'shop.example'}})();</script></body></html>",
    "cloudflare interstitial in German": "<title>Nur einen Moment…</title><h1>shop.example</h1>"
    "<p>Es muss überprüft werden, ob Sie ein Mensch sind.</p><script>window._cf_chl_opt={}</script>",
    "cloudflare browser check": "<title>Just a moment...</title><h1>Checking your browser before accessing</h1>"
    "<p>shop.example. This process is automatic. Your browser will redirect to your requested content shortly.</p>"
    "<p>Please allow up to 5 seconds…</p><p>DDoS protection by Cloudflare</p><p>Ray ID: 7d2f1a2b3c4d5e6f</p>",
    "cloudflare block": "<title>Attention Required! | Cloudflare</title><h1>Sorry, you have been blocked</h1>"
    "<h2>You are unable to access shop.example</h2><h2>Why have I been blocked?</h2><p>This website is using a "
    "security service to protect itself from online attacks. The action you just performed triggered the security "
    "solution. There are several actions that could trigger this block including submitting a certain word or phrase, "
    "a SQL command or malformed data.</p><h2>What can I do to resolve this?</h2><p>You can email the site owner to let "
    "them know you were blocked.</p><p>Cloudflare Ray ID: 8a1b2c3d4e5f6a7b • Your IP: 203.0.113.7</p>",
    "datadome": "<html><head><title>shop.example</title></head><body style='margin:0'>"
    "<script>var dd={'rt':'c'}</script><script src='https://ct.captcha-delivery.com/c.js'></script>"
    "<iframe src='https://geo.captcha-delivery.com/captcha/?initialCid=x'></iframe></body></html>",
    "perimeterx": "<title>Access to this page has been denied</title><h1>Press &amp; Hold to confirm you are a human "
    "(and not a bot).</h1><div id='px-captcha'></div><p>Reference ID 1a2b3c4d-5e6f</p>",
    "imperva": "<html><head><title></title></head><body><iframe src='/_Incapsula_Resource?SWUDNSAI=31&xinfo=1&"
    "incident_id=1234'>Request unsuccessful. Incapsula incident ID: 1234-5678</iframe></body></html>",
    "akamai": "<HTML><HEAD><TITLE>Access Denied</TITLE></HEAD><BODY><H1>Access Denied</H1>You don't have permission to "
    'access "http&#58;&#47;&#47;shop&#46;example&#47;" on this server.<P>Reference&#32;&#35;18&#46;6d6b1702&#46;1'
    "</BODY></HTML>",
    "distil": "<title>Pardon Our Interruption</title><h1>Pardon Our Interruption...</h1><p>As you were browsing, "
    "something about your browser made us think you might be a bot. There are a few reasons this might happen:</p>"
    "<ul><li>You're a power user moving through this website with super-human speed.<li>You've disabled cookies in "
    "your web browser.<li>A third-party browser plugin is preventing JavaScript from running.</ul>",
    "search engine": "<title>Sorry...</title><h1>We're sorry...</h1><p>... but your computer or network may be sending "
    "automated queries.</p><form action=CaptchaRedirect><div class=g-recaptcha></div></form><p>Our systems have "
    "detected unusual traffic from your computer network. This page checks to see if it's really you sending the "
    "requests, and not a robot.</p><p>IP address: 203.0.113.9</p>",
    "shop robot check": "<title>Robot Check</title><h4>Enter the characters you see below</h4><p>Sorry, we just need "
    "to make sure you're not a robot. For best results, please make sure your browser is accepting cookies.</p>"
    "<input name=field-keywords placeholder='Type characters'>",
    "aws waf": "<html><head><title></title><script>window.gokuProps = {'key':'x'};</script></head><body></body></html>",
    "sucuri": "<title>Access Denied - Sucuri Website Firewall</title><h1>Access Denied - Sucuri Website Firewall</h1>"
    "<p>Your request was blocked. Block ID: XYZ012345</p><p>Your IP: 203.0.113.4</p>",
    "anubis": "<title>Making sure you're not a bot!</title><script id=anubis_challenge type=application/json>{}"
    "</script><p>Loading...</p>",
    "plain refusal": "<html><head><title>403 Forbidden</title></head><body><center><h1>403 Forbidden</h1></center>"
    "<hr><center>nginx</center></body></html>",
    "rate limit": "<title>Too many requests</title><p>You are being rate limited. Try again later.</p>",
    "older cloudflare form": "<title>Wait</title><form id='challenge-form' action='/?__cf_chl_f_tk=abc'></form>",
    "refusal and no more": "<title>Access Denied</title><h1>Access denied!</h1>",
    "support id": "<title>Sorry</title><p>The address was rejected. Your support ID is: 1234567890</p>",
    "small captcha": "<title>Security check</title><p>Please solve the captcha to go on.</p>"
    "<script src=https://js.hcaptcha.com/1/api.js></script><div class=h-captcha></div>",
}

PASSED = {
    "article on captchas": f"<title>What is a captcha?</title><article><h1>What is a captcha?</h1><p>Please verify you "
    f"are human: checking your browser before accessing a page is common.</p><p>{PROSE}</p></article>",
    "short note on captchas": "<title>Why do sites ask whether you are human?</title><p>Many sites show a page that "
    "says Checking your browser before accessing, or asks readers to solve the captcha. They do so because programs "
    "send more requests than people. It costs readers some seconds each day, and nobody knows how well it works. We "
    "have asked three shops for figures and will tell you what they say next week.</p>",
    "documentation of a challenge": f"<title>Challenge pages</title><main><h1>Just a moment...</h1><p>Visitors see: "
    f"Enable JavaScript and cookies to continue. Then _cf_chl_opt is set.</p><p>{PROSE}</p></main>",
    "contact form with a captcha": "<title>Contact us</title><h1>Contact us</h1><form><input type=email name=m>"
    "<textarea name=t></textarea><div class=g-recaptcha></div><p>Please confirm you are not a robot.</p></form>",
    "login": "<title>Sign in</title><form><input name=user><input type=password name=p><div class=cf-turnstile></div>"
    "</form>",
    "page with a passive check": f"<title>Lamp</title><h1>Lamp</h1><p>Price $10. {PROSE[:300]}</p><script "
    "src=/cdn-cgi/challenge-platform/scripts/jsd/main.js></script>",
    "film": "<title>Forbidden</title><h1>Forbidden</h1><p>A film of 1932 by Frank Capra with Barbara Stanwyck, Adolphe "
    "Menjou and Ralph Bellamy. A librarian falls in love with a politician who is married and cannot leave his wife. "
    "It was cut when it was shown again some years later, and the uncut film was long thought lost.</p>",
    "song": "<title>Sorry</title><p>Sorry is a 2015 song by a Canadian singer.</p>",
    "definition": "<title>CAPTCHA</title><link rel=canonical href='/captcha/'><p>A captcha is a test. See also: Turing "
    "test.</p>",
    "album": "<title>Un momento</title><p>Album de 1999</p>",
    "second song": "<title>Just a moment</title><p>A song of 2002.</p>",
    "novel": "<title>Forbidden</title><p>A novel by Tabitha Suzuma, published 2010. In stock: $9</p>",
    "episode": "<title>Access denied</title><p>Access Denied is an episode of a series.</p>",
    "number": "<title>403</title><p>A house in the old town. Rooms from $40.</p>",
    "page that loads": "<title>Please wait</title><p>Loading</p>",
    "hackathon": "<title>Hackathon</title><form id='challenge-form'><p>Submit your challenge</p></form>",
    "runners": "<title>Run</title><div id=challenge-running>Run 100 km in May.</div>",
    "status page": "<title>Status</title><p>Some visitors were blocked between 10:00 and 10:20. All is well again.</p>",
    "empty page": "<title></title><p></p>",
    "short page": "<title>Good day</title><p>Good day.</p>",
    "shell of an application": "<title>Shop</title><noscript>You need to enable JavaScript to run this app.</noscript>"
    "<div id=root></div>",
    "search that takes a while": "<title>Please wait</title><p>We are looking for flights from Rome to Oslo "
    "for you. This takes a while, since we ask forty airlines. You may leave this page open, choose your seat "
    "meanwhile, or read how we compare prices and which fees are part of them. Thank you for your patience.</p>",
}


@pytest.mark.parametrize("name", BLOCKED)
def test_a_challenge_or_refusal_is_known(name: str) -> None:
    body = BLOCKED[name].encode()
    assert block_reason(read_page(body, "text/html; charset=utf-8"), body)


@pytest.mark.parametrize("name", PASSED)
def test_a_page_that_is_none_passes(name: str) -> None:
    body = PASSED[name].encode()
    assert block_reason(read_page(body, "text/html; charset=utf-8"), body) == ""


@pytest.mark.parametrize(
    ("header", "blocked"),
    [
        ((b"CF-Mitigated", b"challenge"), True),
        ((b"x-amzn-waf-action", b"captcha"), True),
        ((b"cf-ray", b"8a1b2c3d4e5f6a7b-FRA"), False),
        ((b"x-datadome", b"protected"), False),
    ],
)
def test_headers_of_a_challenge_suffice_and_those_of_a_guard_do_not(header: tuple[bytes, bytes], blocked: bool) -> None:
    body = b"<title>Shop</title><p>Welcome</p>"
    assert bool(block_reason(read_page(body), body, [header])) == blocked


@pytest.mark.parametrize("name", BLOCKED)
def test_the_same_marks_in_a_long_page_are_no_challenge(name: str) -> None:
    body = (BLOCKED[name] + f"<p>{'word ' * (MOST_WORDS + 1)}</p>").encode()
    assert block_reason(read_page(body, "text/html; charset=utf-8"), body) == ""


def test_what_is_no_html_is_never_a_challenge_by_its_text() -> None:
    body = b'{"error": "Access denied", "message": "You have been blocked"}'
    assert block_reason(read_page(body, "application/json"), body) == ""


_AT_THE_DOOR = [
    "Checking your browser before accessing the site",
    "checking if the site connection is secure",
    "It needs to review the security of your connection",
    "This process is automatic. Your browser will redirect",
    "Enable JavaScript and cookies to continue",
    "Verify you are human by completing the action",
    "unusual traffic from your computer network",
    "Suspicious activity from your IP",
    "You have been blocked",
    "Your IP address has been temporarily blocked",
    "Access to this page has been denied",
    "access to this site is forbidden",
    "You don’t have permission to access",
    "Press & hold to confirm",
    "Make sure you're not a bot",
    "confirm that you are a human",
    "prove you are not a robot",
    "You are being rate limited",
    "Incapsula incident ID",
    "As you were browsing, something about your browser",
    "The action you just performed triggered the security solution",
    "Complete the security check",
    "complete the captcha",
    "Why have I been blocked",
    "Enter the characters you see",
    "This website is using a security service to protect itself",
    "Solve this captcha",
    "CHECKING YOUR BROW\u017fER BEFORE ACCESSING",
]


@pytest.mark.parametrize("sentence", _AT_THE_DOOR)
def test_every_sentence_at_the_door_is_found_by_the_quick_look(sentence: str) -> None:
    from recrawl.web.content.challenge import _SENTENCES, _sentences_at_the_door

    text = f"Dear visitor. {sentence} and so on."
    assert _sentences_at_the_door(text) == {found[0].lower() for found in _SENTENCES.finditer(text)} != set()
