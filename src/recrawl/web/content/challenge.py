"""Pages that stand in for the page: challenges, captchas and refusals that a server sends with status 200.

Such a page is no version of the page that was asked for. It is known by a header that says so, by scripts that only a
challenge has, or by what adds up: a title that is nothing but the refusal, sentences that speak to a visitor at the
door, and hardly any other text. A title that songs, films and dictionaries have as well, such as "Sorry" or
"Forbidden", counts only beside a sentence, a reference or a captcha, or if the text says nothing else. Without such a
header a long page is never one, so an article about captchas stays an article, and a form with a captcha stays a form.
Nothing here tries to get past a challenge.

    >>> from recrawl.web.content.page import read_page
    >>> body = b"<title>Just a moment...</title><p>Checking your browser before accessing example.com.</p>"
    >>> block_reason(read_page(body), body)
    'a challenge in place of the page: just a moment'
    >>> article = b"<title>How captchas work</title><p>A captcha asks whether you are human.</p>"
    >>> block_reason(read_page(article), article)
    ''
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from recrawl.web.content.page import Page
from recrawl.web.fetch.protocol import Head
from recrawl.web.fetch.status import outcome_of_status

MOST_WORDS = 250  # a page with more text is no challenge, unless a header says so
FEW_WORDS = 40
MOST_READ = 128 * 1024  # bytes of the body that are looked through
_ENOUGH = 3
_WORD_BYTES = 12  # of a language without spaces
_WORD = re.compile(r"\w+")

# What only a challenge has in its markup, whatever it says and in whatever language.
_MARKS = re.compile(
    rb"_cf_chl_opt|cf-browser-verification|id=[\"']?challenge-error-text|geo\.captcha-delivery\.com"
    rb"|id=[\"']?px-captcha|window\.gokuProps|awswaf\.com/[^\"']{0,200}/challenge|sucuri_cloudproxy_js"
    rb"|id=[\"']?anubis_challenge|/_guard/html\.js|js-challenge-ddg|/distil_r_captcha|/_sec/cp_challenge/"
    rb"|_Incapsula_Resource\?[^\"']{0,40}incident_id",
    re.IGNORECASE,
)
# Names that other pages use too, and what the page of the vendor they are from has besides.
_SHARED_MARK = re.compile(rb"id=[\"']?challenge-(?:form|running)\b", re.IGNORECASE)
_VENDOR = re.compile(rb"__cf_chl_|jschl[_-](?:vc|answer)")
# What a form may have as well.
_CAPTCHA = re.compile(
    rb"g-recaptcha|recaptcha/(?:api|enterprise)\.js|h-captcha|hcaptcha\.com/1/api|cf-turnstile|challenges\.cloudflare\.com"
    rb"|arkoselabs\.com|(?:src|action)=[\"']?[^\"'>\s]{0,200}/captcha[/.?\"']|name=[\"']?captcha",
    re.IGNORECASE,
)
_FORM = re.compile(rb"<textarea|type=[\"']?(?:email|password|tel|search|radio)|<select", re.IGNORECASE)

# Titles that only a challenge or a refusal has.
_TITLE = re.compile(
    r"attention required! \| cloudflare|ddos-guard|checking your browser|verify(?:ing)? (?:that )?you are (?:a )?human"
    r"|security challenge|bot (?:verification|check)|captcha challenge|access to this page has been denied"
    r"|access denied \| .{1,80} used cloudflare to restrict access|.{0,40}sucuri website firewall.{0,40}"
    r"|pardon our interruption|you have been blocked|request (?:blocked|rejected)|too many requests"
    r"|(?:error )?(?:403|401|429|1020)\s*[-:|]?\s*(?:forbidden|access denied|too many requests|error)"
    r"|error (?:403|401|429|1020)|making sure you(?:'|’)re not a bot!?|client challenge",
    re.IGNORECASE,
)
# Titles that are names and words of other pages too.
_COMMON_TITLE = re.compile(
    r"just a moment|one moment,? please|please wait|nur einen moment|einen moment,? bitte|un instant|un momento|sorry"
    r"|captcha|robot check|human verification|security check(?: required)?|are you (?:a )?(?:human|robot)\??"
    r"|unusual traffic|forbidden|403|401|429|1020|access denied|zugriff verweigert|acc[eè]s refus[eé]|acceso denegado"
    r"|accesso negato|доступ (?:запрещен|ограничен)|访问(?:被拒绝|受限)|アクセスが拒否されました",
    re.IGNORECASE,
)
# Sentences that speak to a visitor at the door.
_SENTENCES = re.compile(
    r"checking your browser before accessing|checking if the site connection is secure"
    r"|needs to review the security of your connection|this process is automatic\. your browser will redirect"
    r"|enable javascript and cookies to continue|verify you are human by completing the action"
    r"|(?:unusual|automated|suspicious) (?:traffic|activity|requests?) from your (?:computer )?(?:network|ip)"
    r"|(?:you|your ip(?: address)?|(?:this|your) request|access) (?:have|has|was) (?:been )?(?:temporarily )?blocked"
    r"|access to this (?:page|site|website|resource) (?:has been|is|was) (?:denied|blocked|forbidden)"
    r"|you (?:don(?:'|’)t|do not) have permission to access|(?:press|click) (?:&|and) hold (?:the button )?to confirm"
    r"|(?:confirm|prove|make sure|verify|ensure) (?:that )?you(?:(?:'|’)re| are) (?:not a (?:ro)?bot|(?:a )?human)"
    r"|you are being rate limited|incapsula incident id|as you were browsing,? something about your browser"
    r"|the action you just performed triggered the security solution|complete the (?:security check|captcha)"
    r"|this website is using a security service to protect itself|why have i been blocked"
    r"|enter the characters you see|solve (?:the|this) captcha",
    re.IGNORECASE,
)
# Each of these sentences has one of these words: most pages have none, which is found out much sooner.
_WORDS_AT_THE_DOOR = (
    "your browser", "connection", "javascript and cookies", "human", "from your ", "blocked", "access to this",
    "permission to access", "to confirm", "bot", "rate limited", "incapsula", "security s", "captcha", "security check",
    "characters you see",
)  # fmt: skip
_REFERENCE = re.compile(
    r"(?:cloudflare )?ray id:?\s*[0-9a-f]{12}"
    r"|(?:incident|request|support|event|block|error|session) id(?: is)?:?\s*#?[\w-]{6,}"
    r"|reference (?:id|number|#|no\.?):?\s*#?\s?[0-9a-f.-]{6,}"
    r"|your ip(?: address)?(?: is)?:?\s*\d{1,3}(?:\.\d{1,3}){3}",
    re.IGNORECASE,
)


def block_reason(page: Page, body: bytes, headers: Iterable[tuple[bytes, bytes]] = ()) -> str:
    """Why a page is a challenge or a refusal in place of the page that was asked for; empty if it is none. O(bytes).

    Args:
        page: as read from the body, under rules that keep all its text.
        body: the decoded body.
        headers: of the answer.
    """
    if outcome_of_status(Head(200, tuple(headers)))[0] == "blocked-page":
        return "a header says that this is a challenge"
    words = max(len(page.text.split()), len(page.text) // _WORD_BYTES)
    if page.kind != "html" or words > MOST_WORDS:
        return ""
    start = body[:MOST_READ]
    mark = _MARKS.search(start)
    if mark is None and _VENDOR.search(start) is not None:
        mark = _SHARED_MARK.search(start)
    if mark is not None:
        return f"the markup of a challenge: {mark[0].decode('latin-1')[:40]}"
    return _reason_by_text(page, start, words)


def _reason_by_text(page: Page, body: bytes, words: int) -> str:
    """What a title, sentences and a captcha add up to; a title or a sentence must be among it."""
    text = " ".join(page.text.decode("utf-8", "replace").split())
    name = page.metadata.title.strip(" .…!-|")
    common = _COMMON_TITLE.fullmatch(name) is not None
    titled = common or _TITLE.fullmatch(name) is not None
    sentences = _sentences_at_the_door(text)
    if not titled and not sentences:
        return ""
    beside = min(len(sentences), 2) + (_REFERENCE.search(text) is not None) + (_CAPTCHA.search(body) is not None)
    if common and not beside and not _only_repeats(text, name):
        return ""
    points = 2 * titled + beside + (words <= FEW_WORDS) - 2 * (_FORM.search(body) is not None)
    if points < _ENOUGH:
        return ""
    return f"a challenge in place of the page: {(name if titled else min(sentences)).lower()}"


def _sentences_at_the_door(text: str) -> set[str]:
    folded = text.casefold()
    if not any(word in folded for word in _WORDS_AT_THE_DOOR):
        return set()
    return {found[0].lower() for found in _SENTENCES.finditer(text)}


def _only_repeats(text: str, title: str) -> bool:
    """Whether a text has words, and none but those of the title."""
    words = _WORD.findall(text.lower())
    return bool(words) and set(words) <= set(_WORD.findall(title.lower()))
