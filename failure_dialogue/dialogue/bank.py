"""The bank of phrasings (replies.yaml), the words that deny a cause, and a classifier made of both."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

from failure_dialogue.dialogue.acts import Act
from failure_dialogue.dialogue.text import clean_text
from failure_dialogue.errors import VocabularyError
from failure_dialogue.paths import config_file
from failure_dialogue.vocabulary import Vocabulary

#: A cause, request or act with fewer phrasings than this is not understood well enough to be offered.
MIN_PHRASES = 5


@dataclass(frozen=True)
class Label:
    """What a phrasing means: kind is cause, request, act or uninformative; name says which."""

    kind: str
    name: str


_NEGATOR = r"(?:not|no|never|nothing|neither|nor|without|hardly|cannot|none|nobody|n't|far from|anything but)"
_NEGATED = re.compile(rf"(?:\b|(?=n't)){_NEGATOR}\b")
#: Words that look like a denial but are none.
_NO_DENIAL = re.compile(r"\b(?:not (?:only|just)|no (?:wonder|doubt)|can't help|could not be|couldn't be"
                        r"|why not)\b")
_PLAIN_NOTHING = re.compile(r"\bweighs? (?:next to )?nothing\b")
_FINE = (r"(?:(?:just|perfectly|quite|totally|all|really|certainly|probably|definitely) )*(?:fine|ok|okay"
         r"|alright"
         r"|all right|good|great|perfect|normal|right|enough|sufficient|correct|no (?:problem|issue|trouble)"
         r"|as (?:it should be|expected|planned)|irrelevant)\b")
_UNREAL = re.compile(r"\b(?:if|should|need|needs|must|want|until|unless|would|have to|has to|more|make"
                     r"|next time)\b")


def _any(words: list[str]) -> str:
    """Any of these words, a trailing * standing for any ending; matches nothing when there are none."""
    escaped = [re.escape(w.lower()).replace(r"\*", r"\w*") for w in words]
    return "(?:" + "|".join(escaped) + ")" if escaped else r"(?!)"


def _phrase_or_word(words: list[str], several: bool) -> list[str]:
    return [w for w in words if (" " in w.strip()) == several]


class Denial:
    """Whether a statement rules one cause out, by its words, opposites and things (see replies.yaml)."""

    def __init__(self, words: list[str], opposites: list[str], things: list[str]) -> None:
        word, thing = _any(words), _any(things)
        state, said = _any(_phrase_or_word(opposites, False)), _any(_phrase_or_word(opposites, True))
        between = r"(?:\W+(?!and\b)[\w']+){0,4}?\W+"
        trouble = r"(?:problem|issue|cause|reason|trouble)"
        self._word = re.compile(rf"\b{word}\b")
        self._denied = re.compile("|".join((
            rf"{_NEGATOR}{between}{word}\b",
            # "it is not about your grip", "nothing wrong with the surface"; but not "not the right grip".
            rf"\b(?:not|n't|nothing to do with|nothing (?:is )?wrong with|no {trouble}s? with|(?:not|n't"
            rf"|no) (?:a |the )?"
            rf"(?:question|matter|{trouble}) (?:of|with))(?: (?:because of|about|due to|down to))?"
            rf" (?:the|your|its|any) {thing}\b(?!\W+(?:hard|tight|firm|well|enough|proper))",
            rf"\b{thing}(?: [\w']+)?(?:'s| is| was| are| were| looks?| looked| seems?| seemed) {_FINE}",
            rf"\b{thing}(?:'s| is| was| are| were)?(?:n't| not) (?:the|a|an|my|any) {trouble}\b",
            rf"(?:\bno|\bnot|n't)(?: a| an| the| any)? {thing} {trouble}\b")))
        self._opposite = re.compile("|".join((
            rf"\b(?:is|was|are|were|it's|that's|seems?|looks?|feels?|felt|had|have|has|held|holding|gripped"
            rf"|gripping|closed)"
            rf"(?:\W+[\w']+){{0,3}}?\W+{state}\b(?!-)",
            rf"^(?:[\w']+ )?{state} as\b", rf"^(?:perfectly|completely|totally|bone|quite|very) {state}$",
            rf"\b{said}\b")))

    def holds(self, clause: str) -> bool:
        """True when the cleaned clause says that the cause is not it."""
        if _NO_DENIAL.search(clause):
            return False
        if self._denied.search(clause):
            return True
        found = self._opposite.search(clause)
        if not found or _UNREAL.search(clause) or re.search(r"\btoo\b", found.group()):
            return False
        # "it weighs nothing" holds its own negation; "not held tightly" means the cause.
        bare = f"{clause[:found.start()]} {_PLAIN_NOTHING.sub(' ', found.group())} {clause[found.end():]}"
        return not _NEGATED.search(bare)

    def names(self, clause: str) -> bool:
        """True when the cleaned clause holds a word that means the cause and does not deny it."""
        return bool(self._word.search(clause)) and not self.holds(clause)


def is_negated(text: str) -> bool:
    """Whether a cleaned text holds any negation."""
    return bool(_NEGATED.search(text))


@dataclass(frozen=True)
class ReplyBank:
    """Every phrasing with what it means, and what denies each cause. register: menu, indirect, ... or ''."""

    texts: tuple[str, ...]
    labels: tuple[Label, ...]
    registers: tuple[str, ...]
    denials: dict[str, Denial]


def _phrases(value, where: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(p, str) and clean_text(p) for p in value):
        bad = [p for p in value if not isinstance(p, str)] if isinstance(value, list) else value
        raise VocabularyError(f"{where} must be a list of texts; found {bad!r} (put quotes around yes, no "
                              "and numbers)")
    return value


def _section(data, key: str, path: Path) -> dict:
    section = data.get(key) if isinstance(data, dict) else None
    if not isinstance(section, dict):
        raise VocabularyError(f"{path} has no section {key!r} with a mapping in it; add it")
    return section


def as_person_says(phrase: str) -> str:
    """A robot's phrase turned round: "my grip was too weak" becomes "your grip was too weak"."""
    swap = {"my": "your", "i": "you", "me": "you", "mine": "yours", "myself": "yourself", "i'm": "you're",
            "am": "are"}
    return re.sub(r"[A-Za-z']+", lambda m: swap.get(m.group().lower(), m.group()), phrase)


def load_bank(vocabulary: Vocabulary, path: Path | None = None) -> ReplyBank:
    """Read replies.yaml (the shipped one by default) and check it against the vocabulary.

    Every cause of the vocabulary needs MIN_PHRASES phrasings, its own phrase in failures.yaml counted;
    VocabularyError says what is missing or unknown.
    """
    path = Path(path) if path else config_file("replies.yaml")
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise VocabularyError(f"{path} cannot be read as YAML: {error}") from error
    entries: dict[tuple[str, Label], str] = {}

    def add(texts: list[str], label: Label, register: str) -> None:
        for text in texts:
            entries.setdefault((clean_text(text), label), register)

    known = {cause.name: cause for family in vocabulary.families.values() for cause in family.causes.values()}
    denials = {}
    for name, spec in _section(data, "causes", path).items():
        where = f"{path}: cause {name!r}"
        if name not in known:
            raise VocabularyError(f"{where} is not in failures.yaml; known: {', '.join(known)}")
        if not isinstance(spec, dict) or not isinstance(spec.get("phrases"), dict):
            raise VocabularyError(f"{where} has no mapping 'phrases'; add one with a list for each register")
        denials[name] = Denial(*(_phrases(spec.get(key) or [], f"{where}, {key}")
                                 for key in ("words", "opposites", "things")))
        for register, texts in spec["phrases"].items():
            add(_phrases(texts, f"{where}, {register}"), Label("cause", name), str(register))
    for name, cause in known.items():
        denials.setdefault(name, Denial([], [], []))
        add([cause.phrase, as_person_says(cause.phrase)], Label("cause", name), "menu")
    for name, texts in _section(data, "requests", path).items():
        vocabulary.repair(name)
        add(_phrases(texts, f"{path}: request {name!r}"), Label("request", name), "")
    acts = {a.value for a in Act} - {Act.CAUSE, Act.UNINFORMATIVE, Act.NO_REPLY}
    for name, texts in _section(data, "acts", path).items():
        if name not in acts:
            raise VocabularyError(f"{path}: act {name!r} is unknown; known: {', '.join(sorted(acts))}")
        add(_phrases(texts, f"{path}: act {name!r}"), Label("act", name), "")
    for name, texts in _section(data, "uninformative", path).items():
        add(_phrases(texts, f"{path}: uninformative {name!r}"), Label("uninformative", str(name)), "")

    labels = [label for _, label in entries]
    wanted = [Label("cause", name) for name in known] + [Label("act", name) for name in sorted(acts)]
    for label in wanted:
        if labels.count(label) < MIN_PHRASES:
            raise VocabularyError(f"{path} holds {labels.count(label)} phrasings of {label.kind} "
                                  f"{label.name!r}; "
                                  f"add at least {MIN_PHRASES - labels.count(label)} more to understand it")
    return ReplyBank(tuple(t for t, _ in entries), tuple(labels), tuple(entries.values()), denials)


class PhraseClassifier:
    """Kernel ridge regression on sentence vectors, its scores made probabilities by a calibrated softmax.

    vectors: (n, d) unit rows, one a phrasing; labels: their n meanings. The kernel is exp(2 (cosine - 1)),
    the ridge 0.1, larger for classes with many phrasings. Leave-one-out scores have a closed form (target -
    weight / diagonal of the inverse), and the temperature is the one that makes them likeliest. Between
    the causes alone, where mistakes are more frequent than elsewhere, a second temperature is fitted.
    """

    _WIDTH, _RIDGE, _BALANCE = 2.0, 0.1, 0.5

    def __init__(self, vectors: np.ndarray, labels: tuple[Label, ...]) -> None:
        self.classes = tuple(dict.fromkeys(labels))
        self._vectors = vectors.astype(np.float64)
        self.index = np.array([self.classes.index(label) for label in labels])
        counts = np.bincount(self.index).astype(float)
        ridge = self._RIDGE * (counts[self.index] / np.median(counts)) ** self._BALANCE
        targets = np.eye(len(self.classes))[self.index]
        inverse = np.linalg.inv(self._kernel(self._vectors) + np.diag(ridge))
        self._weights = inverse @ targets
        self.left_out_scores = targets - self._weights / np.diag(inverse)[:, None]
        every = np.arange(len(self.classes))
        self.causes = np.flatnonzero([label.kind == "cause" for label in self.classes])
        self.temperature = self._fitted_temperature(every)
        self.cause_temperature = self._fitted_temperature(self.causes)

    def _kernel(self, vectors: np.ndarray) -> np.ndarray:
        return np.exp(self._WIDTH * (vectors @ self._vectors.T - 1.0))

    def _fitted_temperature(self, columns: np.ndarray) -> float:
        """The one under which the left-out phrasings of these classes are likeliest."""
        rows = np.flatnonzero(np.isin(self.index, columns))
        scores = self.left_out_scores[np.ix_(rows, columns)]
        right = (np.arange(len(rows)), np.searchsorted(columns, self.index[rows]))

        def surprise(temperature: float) -> float:
            return float(-np.log(np.maximum(_softmax(scores / temperature)[right], 1e-12)).mean())

        return min(np.geomspace(0.02, 1.0, 60).tolist(), key=surprise)

    def _probabilities(self, scores: np.ndarray) -> np.ndarray:
        p = _softmax(scores / self.temperature)
        mass = p[:, self.causes].sum(axis=1, keepdims=True)
        p[:, self.causes] = mass * _softmax(scores[:, self.causes] / self.cause_temperature)
        return p

    def left_out(self) -> np.ndarray:
        """(n, classes) probabilities of each phrasing of the bank with that phrasing left out."""
        return self._probabilities(self.left_out_scores)

    def probabilities(self, vectors: np.ndarray) -> np.ndarray:
        """(m, d) unit rows to (m, classes) probabilities, in the order of classes."""
        return self._probabilities(self._kernel(vectors.astype(np.float64)) @ self._weights)

    def nearest(self, vector: np.ndarray) -> float:
        """Cosine of a unit vector to the phrasing that is nearest to it."""
        return float((self._vectors @ vector).max())


def _softmax(scores: np.ndarray) -> np.ndarray:
    exponents = np.exp(scores - scores.max(axis=1, keepdims=True))
    return exponents / exponents.sum(axis=1, keepdims=True)
