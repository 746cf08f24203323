"""What a person typed or a recogniser heard, made fit to read: hygiene, clauses, self-corrections."""

from __future__ import annotations

import re
import unicodedata

#: Longer replies are cut here before they are understood; the words for stop are looked for in all of it.
MAX_CHARACTERS = 600

_TAG = re.compile(r"<[^<>]{0,200}>")
_QUOTES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "`": "'", "“": '"', "”": '"'})
_NO_APOSTROPHE = re.compile(r"\b(is|are|was|were|do|does|did|ca|wo|would|could|should|has|have|had)nt\b")


def readable(raw: str | bytes | None) -> str:
    """The text as it came, without control characters, markup or runs of space; never fails on any input.

    Bytes are read as UTF-8; what is not UTF-8, and lone surrogates, are dropped.
    """
    if raw is None:
        return ""
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    text = unicodedata.normalize("NFKC", text.translate(_QUOTES))
    text = "".join(" " if c.isspace() else c for c in text
                   if c.isspace() or (unicodedata.category(c)[0] != "C" and c != "\ufffd"))
    return " ".join(_TAG.sub(" ", text).split())


def clean_text(raw: str | bytes | None) -> str:
    """readable() in lower case and with its apostrophes, as the rules and the model read it."""
    return _NO_APOSTROPHE.sub(r"\1n't", readable(raw).lower())


_SPLIT = re.compile(
    r"\s*[.;,!?:()\u2013\u2014\u2026]+(?=\s|$)\s*|\s+-+\s+"
    r"|\s+(?:but|although|though|however|whereas|because|since|instead|except|so)\s+"
    r"|\s+(?:and|then)\s+(?=(?:you|it|it's|i|the|there|there's|then|not|your|that|nothing|please)\b)"
    r"|\s+(?=(?:just|only|rather|simply)\s+(?:very |too |so |a |an |the |your |really )*\w+$)"
    r"|\s+(?=it's (?:just|only|more|simply|rather)\b)"
    # "wet not heavy": a second statement begins at the negation, unless a verb carries it.
    r"|(?<!\bis)(?<!\bare)(?<!\bwas)(?<!\bwere)(?<!\bdo)(?<!\bdoes)(?<!\bdid)(?<!\bit's)(?<!\bhas)(?<!\bhave)"
    r"(?<!\bbut)(?<!\bcan)(?<!\bcould)(?<!\bwould)(?<!\bprobably)(?<!\band)(?<!\bor)"
    r"\s+(?=not(?: \S+){1,4}$)")
_CONTENT = re.compile(r"[^\W_]")


def clauses(text: str) -> list[str]:
    """The statements a cleaned reply is made of, in order; the reply itself when there is only one."""
    parts = [part.strip(" \"'*_-") for part in _SPLIT.split(text)]
    return [part for part in parts if _CONTENT.search(part)] or [text]


_CORRECTION = re.compile(
    r"[\s,.;:!?()\u2013\u2014\u2026-]+(?:(?:oh|hm+|um+|uh+|er+|well|but|or|and)[\s,.]+)*"
    r"(?:no+[\s,.!-]+(?:wait|sorry|actually|hang on|hold on|scratch that|i mean|i meant|rather|not that"
    r"|correction"
    r"|that's (?:not it|wrong))"
    r"|(?:wait|sorry|hang on|hold on)[\s,.!-]+(?:no|i mean|i meant|actually|not that)\b"
    r"|scratch that|strike that|forget that|correction|on second thoughts?|i take (?:that|it) back|or rather"
    r"|make that"
    r"|my mistake|my bad|i was wrong|come to think of it|i meant(?: to say)?|i mean|(?:but |or )?actually"
    r"|(?<=[,.;!?\u2013\u2014\u2026] )(?:wait|sorry|no)(?=[\s]*[,.;!?\u2013\u2014\u2026]))"
    r"(?=[\s,.;:!?()\u2013\u2014\u2026-])[\s,.;:!?()\u2013\u2014\u2026-]*(?:(?:no|sorry|actually"
    r"|i mean)[\s,.]+)*")


def versions(text: str) -> list[str]:
    """What the person said first, and each correction of it, in order ("heavy, no wait, wet": two)."""
    parts = [part.strip(" ,.;:!?-\u2013\u2014\u2026") for part in _CORRECTION.split(text)]
    return [part for part in parts if _CONTENT.search(part)] or [text]


def short_text(text: str) -> str:
    """At most MAX_CHARACTERS of it, cut between words where there are any."""
    if len(text) <= MAX_CHARACTERS:
        return text
    cut = text[:MAX_CHARACTERS]
    return cut.rsplit(" ", 1)[0] if " " in cut else cut
