"""Replies that rules read better than a model: stop, yes and no, wait, an option's number."""

from __future__ import annotations

import re
from enum import Enum

from failure_dialogue.dialogue.text import clean_text


class Act(str, Enum):
    """What a reply does (the values are those of ReplyMeaning.act)."""

    CAUSE = "cause"
    UNINFORMATIVE = "uninformative"
    CONFIRM = "confirm"
    DENY = "deny"
    WAIT = "wait"
    STOP = "stop"
    TAKEOVER = "takeover"
    REPEAT = "repeat"
    WHY = "why"
    NO_REPLY = "no_reply"


#: Acts after which the question stays open.
STAYS_OPEN = frozenset({Act.WAIT, Act.REPEAT, Act.WHY})


# Stop. One false stop costs a retry; one missed stop may cost a hand: in doubt it is a stop.
_LEAD = (r"(?:^|[.;,!?:\u2013\u2014\u2026-]\s*|\b(?:but|and|so|then|said|please|just|robot|now|ok|okay|no|oh"
         r"|hey|well"
         r"|right|wait|you must|you should|you can|you may|you have to|you need to)\s+)")
_STOP_WORD = re.compile(r"\b(?:s+t+o+p+|stopp|halt|abort|cease|e-stop|estop)\b")
_STOP_AT_START = re.compile(_LEAD + r"(?:s+t+o+p+|stopp|halt|abort|cease|freeze|cancel|quit)\b"
                            r"(?! (?:button|sign|light|being so)\b)")
_NOT_AFTER = re.compile(
    r"(?:\b(?:a|an|the|full|not|never|would|could|will|might|may|did|does|it|that|he|she|they|this|which|bus"
    r"|pit|non"
    r"|short|door|end|complete|dead|sudden|abrupt|without|before|why|when|where|cannot|can|i|to|hard)"
    r"|n't|\b(?:did|do|when|if|why|before|until|once|as|after|how) you)[\s-]+$")
_TOLD_TO = re.compile(r"\b(?:want|need|tell|told|ask|asked|have|like|order|ordered|got|you|robot|time)"
                      r"(?: you| it| the \w+)? to $")
_NOT_BEFORE = re.compile(r"\s*(?:button|sign|light|(?:it|this|that|them|the \w+) (?:from )?\w+ing\b"
                         r"|\w+ing\b)")
_STOP_PHRASE = re.compile(
    r"\b(?:forget (?:it|about (?:it|this|that)|this|the (?:whole )?\w+)|never ?mind|hands off|call (?:it"
    r"|this|that) off"
    r"|leave (?:it|that|them|this|everything)(?: all)? (?:alone|be|there|here|where|as)|let (?:it|that) be"
    r"|keep (?:your|those) (?:hands?|fingers|claws?) off|(?:get|stay|keep|back) away from|back off|stand down"
    r"|(?:cut|knock) (?:it|that) (?:out|off)|quit (?:it|that|this)|emergency stop|emergency"
    r"|(?:cancel|abandon|scrap|end|kill) (?:it|this|that|the (?:task|job|attempt|mission|power|whole thing"
    r"|motion))"
    r"|shut (?:it |yourself |everything )?down|(?:switch|turn|power) (?:it |yourself "
    r"|the robot )?off(?! the (?:light|lamp))"
    r"|no more (?:attempts?|tries|trying)|(?:we're|we are|i'm|i am) done (?:here|with this)"
    r"|make it stop|no further)\b")
_STOP_CLAUSE = re.compile(
    r"(?:^|[.;,!?]\s*)(?:please |robot |just |ok |okay |no |hey |oh |you can |well )*"
    r"(?:(?:do not|don't|never) (?:you )?(?:dare|move|touch|try|continue|go on|carry on|proceed|bother"
    r"|go near"
    r"|do (?:anything|it|that|this)|retry)\b(?! the (?:light|lamp))"
    r"|give (?:it )?up\b|(?:leave|drop|skip|end) (?:it|this)(?: please| now)?(?=$|[.;,!?])"
    r"|(?:that's |that is )?enough(?: already| now| please)?(?=$|[.;,!?])"
    r"|let's (?:stop|leave it|drop it|not|call it a day|end)\b)")


def is_stop(raw: str | bytes | None) -> bool:
    """Whether a reply tells the robot to stop, anywhere in it. Fast and without a model: ask this first.

    "it stopped halfway" and "pads would stop it sliding" are no stops; "it tips over stop stop" is one.
    """
    text = clean_text(raw)
    if _STOP_AT_START.search(text) or _STOP_PHRASE.search(text) or _STOP_CLAUSE.search(text):
        return True
    for word in _STOP_WORD.finditer(text):
        before, after = text[:word.start()], text[word.end():]
        if _NOT_BEFORE.match(after):
            continue
        if not _NOT_AFTER.search(before) or _TOLD_TO.search(before):
            return True
    return False


#: What speech recognisers write when nobody spoke.
SILENCE = frozenset({
    "thank you", "thanks", "thank you very much", "thanks for watching", "thank you for watching", "you",
    "bye", "bye bye", "so", "the", "i", "uh", "um", "hm", "hmm", "mm", "oh", "ah", "silence", "blank_audio",
    "music", "applause", "please subscribe", "subtitles by the amara org community"})

_POLITE = r"(?:please|robot|hey|ok|okay|oh|well|um+|uh+|hm+|ah|sorry|just|so|and|but|then)"
_YES = (r"(?:yes|yeah|yep|yup|ya|aye|sure|ok|okay|right|correct|exactly|absolutely|definitely|indeed"
        r"|certainly"
        r"|of course|affirmative|true|agreed|go ahead|go for it|do it|do that|please do|it is|it was|it does"
        r"|that's (?:it|right|correct|true|the one)|that is (?:it|right|correct|true)|sounds good|i think so"
        r"|i guess so|y|please|try (?:it|that)|carry on|why not)")
_NO = (r"(?:no|nope|nah|negative|wrong|incorrect|not really|not at all|of course not|i don't think so|n"
       r"|it isn't|it's not|it wasn't|that's (?:not (?:it|right|true)|wrong)|(?:no+,? )?(?:none|neither)"
       r"(?: of (?:these|those|them|the above|that))?|something else|nothing of the (?:sort|kind)"
       r"|certainly not"
       r"|thanks|thank you)")
_WAIT = (r"(?:wait|hold on|hang on|hold up|hold it|one (?:moment|second|sec|minute|min)|(?:a |just a |one "
         r"|half a )?"
         r"(?:moment|second|sec|minute|min|tick|mo)|give me (?:a|one|two|five|ten|some|another)? ?"
         r"(?:moment|second|sec|minute|min|bit|time|minutes|seconds|more minute)|pause|stand by|not yet"
         r"|not now|not so fast|easy"
         r"|bear with me|be right back|brb|(?:i'm|i am) (?:coming|on my way)|let me (?:check|think|see|look"
         r"|have a (?:look|think|closer look)|take a look)|i(?:'ll| will) (?:be right (?:back|there)|check"
         r"|have a look))"
         r"(?: (?:for )?(?:me|a (?:moment|second|sec|minute|bit|little)|there|here|up|first|now|then|please"
         r"|at it"
         r"|about (?:it|that)))*")
_REPEAT = (r"(?:what|huh|eh|pardon(?: me)?|come again|sorry|excuse me|say (?:that|it|this)? ?again|repeat"
           r"(?: (?:that|it|the question|the options|yourself))?|(?:can|could|would"
           r"|will) you (?:please )?(?:repeat|say)"
           r"\b.{0,40}|what (?:did you (?:just )?(?:say|ask)|was (?:that|the question|your question)"
           r"|is the question"
           r"|are the options|were the options)(?: again)?|once (?:more|again)|one more time|i (?:didn't"
           r"|did not|couldn't"
           r"|can't) (?:quite |really )?(?:hear|catch|get|understand|follow)(?: (?:that|you|it|the question"
           r"|what you "
           r"(?:said|asked)))?|i missed that|louder|speak (?:up|louder))")
_WHY = (r"(?:why|how come|what happened|what went wrong|how (?:do|did) you know(?: that)?|why (?:do|did|are"
        r"|can't|don't"
        r"|is|was|that|so|would|should)\b.{0,60}|explain(?: that| it| yourself)?|tell me (?:why|more)"
        r"|what makes you\b"
        r".{0,40}|what (?:did you|do you|do your sensors|can you) (?:see|saw|measure|know|say"
        r"|notice)\b.{0,20}"
        r"|on what grounds)")
_TAKEOVER = re.compile(
    r"\b(?:let me (?:do|show|handle|take over|demonstrate|try|guide|drive|teach|control|steer|get it|pick"
    r"|grab it|move"
    r" (?:it|your)|lift it|help you|fix (?:it|this))|i(?:'ll| will| can| could| want to|'d rather|'d like to"
    r"| would like to"
    r"|'d prefer to| would rather) (?:just )?(?:do (?:it|this|that)|show you|take (?:over|it from here"
    r"|control)|handle "
    r"(?:it|this|that)|drive|steer|guide (?:it|you|your)|get it myself|pick it up|control (?:it|you|the)"
    r"|demonstrate)"
    r"|give me (?:the )?controls?|hand (?:it|them|the controls?|control)? ?(?:over )?to me"
    r"|hand me the controls?"
    r"|leave (?:it|this|that) to me|i'?ve got (?:this|it)\b|i got this|(?:switch|change|go) to manual"
    r"|manual (?:mode|control)|watch me|take over manually|step aside|move aside|i take over|do it myself)\b")


def _whole(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{_POLITE}[\s,.!]+)*{pattern}(?:[\s,.!]+(?:{pattern}|{_POLITE}|now|then|again))*")


_WHOLE = ((Act.CONFIRM, _whole(_YES)), (Act.DENY, _whole(_NO)), (Act.WAIT, _whole(_WAIT)),
          (Act.REPEAT, _whole(_REPEAT)), (Act.WHY, _whole(_WHY)))


def spoken_act(text: str) -> Act | None:
    """The act of a cleaned reply that says nothing else ("yes please", "hang on a second"), or None."""
    bare = " ".join(re.sub(r"[.;,!?\u2026\"()]+", " ", text).split())
    if not bare:
        return None
    if _TAKEOVER.search(bare):
        return Act.TAKEOVER
    for act, pattern in _WHOLE:
        if pattern.fullmatch(bare):
            return act
    return None


_LEADING = re.compile(r"(yes|yeah|yep|yup|right|correct|exactly|sure|true)\b|(no|nope|nah|wrong)\b")


def leading_answer(text: str) -> tuple[Act | None, str]:
    """A yes or no that opens a longer cleaned reply, and the rest ("no, it is oily": DENY, "it is oily")."""
    match = _LEADING.match(text)
    if not match:
        return None, text
    rest = text[match.end():]
    if match.group(2) and re.match(r" (?!it\b|that|the |your|you |i |this|there|not |wait)", rest):
        return None, text  # "no friction on it", "no idea": no answer but a statement
    return (Act.CONFIRM if match.group(1) else Act.DENY), rest.strip(" ,.;:!?-\u2013\u2014\u2026")


_ORDINALS = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4,
             "fifth": 5}
_NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5}
_CHOICE = re.compile(
    r"(?:(?:it's|it is|i think|i'd say|i guess|probably|maybe|definitely|the answer is|answer|yes|well|um+"
    r"|uh+|so) )*"
    r"(?:(?:the )?(?:option|number|no|nr|choice|answer|letter|case) )?"
    r"(?:the )?(?P<pick>\d{1,2}|[a-e]|one|two|three|four|five|first|second|third|fourth|fifth|1st|2nd|3rd"
    r"|4th|last)"
    r"(?: (?:one|option|choice|cause|reason|answer))?"
    r"(?: (?:please|i think|i guess|probably|of (?:them|those|these)|that's it))*")


def chosen_option(text: str, count: int) -> int | None:
    """Which of count options a cleaned reply names by number, letter or place (0-based), or None."""
    bare = " ".join(re.sub(r"[.;,!?()\"'#:]+(?=\s|$)|[(#\"]", " ", text).split())
    match = _CHOICE.fullmatch(bare)
    if not match:
        return None
    pick = match.group("pick")
    if pick == "a" and bare != "a" and not bare.startswith(("option", "letter", "answer", "choice")):
        return None
    if pick == "last":
        number = count
    elif pick.isdigit():
        number = int(pick)
    else:
        number = _ORDINALS.get(pick) or _NUMBERS.get(pick) or "abcde".index(pick) + 1
    return number - 1 if 1 <= number <= count else None
