"""What of a source is compared with the published crates, and cut into which items."""

import re

from . import rust_text

# Headers that the standard library and serde demand letter by letter: each counts as one item, or every type with a text of its
# own would look like every other.
STANDARD = [
    [token.text for token in rust_text.tokens(header)]
    for header in (
        "(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {",
        "(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {",
        "fn partial_cmp(&self, other: &Self) -> Option<Ordering> { Some(self.cmp(other)) }",
        "fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {",
        "fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {",
    )
]
KEYWORDS = set(
    "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref "
    "return self Self static struct super trait true type union unsafe use where while".split()
)
WORD = re.compile(r"[^\W_]+(?:['’]\w+)?")
PLACEHOLDER = re.compile(r"\{[^{}]*\}")
ESCAPE = re.compile(r"\\(?:[nrt0\"'\\]|\n\s*)")
LITERAL = re.compile(r'^[a-z]*#*"|"#*$')


def code_items(tokens):
    """Code as (item, line): its tokens, without comments."""
    code, items, position = rust_text.code_of(tokens), [], 0
    texts = [token.text for token in code]
    while position < len(code):
        header = next((h for h in STANDARD if texts[position] == h[0] and texts[position : position + len(h)] == h), None)
        items.append((" ".join(header or [texts[position]]), code[position].line))
        position += len(header or "1")
    return items


def shape_items(items):
    """The same with all names and constants alike: a copy with other names has the same shape."""
    return [(shape_of(item), line) for item, line in items]


def shape_of(item):
    if re.match(r"\w+$", item) and not item[0].isdigit():
        return item if item in KEYWORDS else "name"
    return "constant" if item[0] in "\"'0123456789" or LITERAL.match(item) else item


def prose_items(tokens):
    """The words of all comments as (word, line)."""
    return [item for token in tokens if token.kind == "comment" for item in word_items(token.text, token.line)]


def word_items(text, first_line=1):
    """The words of a text as (word, line), without punctuation and in lower case."""
    return [
        (word.lower(), first_line + number)
        for number, line in enumerate(text.split("\n"))
        for word in WORD.findall(line)
    ]


def text_items(tokens):
    """The words of each string literal, as lists of (word, line). What a format string puts in parts a text in two."""
    for token in tokens:
        if token.kind != "text":
            continue
        for piece in PLACEHOLDER.split(ESCAPE.sub(" ", LITERAL.sub("", token.text))):
            words = word_items(piece, token.line)
            if words:
                yield words


def is_repetitive(items, window=8):
    """Whether a run is mostly one thing again and again, like the arms of a match over all types of numbers."""
    windows = [tuple(items[at : at + window]) for at in range(len(items) - window + 1)]
    return len(set(windows)) < 0.6 * len(windows)
