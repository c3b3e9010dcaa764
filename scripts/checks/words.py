"""Words that name nothing: pronouns in the place of a subject, and names of files and types that do not say what is in them."""

import re

# Each word, and what to write in its place.
WORDS = {
    "whoever": "the caller, the client, the thread, code that …",
    "whomever": "the caller, the client, …",
    "whosever": "of any owner",
    "nobody": "no client, no caller, no code; or say what is unused",
    "somebody": "a caller, a client, another thread",
    "anybody": "any caller, any program",
    "everybody": "all callers, all clients",
    "asker": "the caller",
}
# Stems of files, and names of types and modules: what is in them?
NAMES = {"asked", "few", "meaning", "misc", "of_shape", "others", "planned", "rest", "stuff", "things"}
FINE = {"bench/src/connectors/rest.ts"}  # REST, the style of HTTP interfaces

WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
NAMED = re.compile(r"\b(?:struct|enum|trait|mod|class|interface)\s+(\w+)")
# A page quotes code; the code itself is read where it is.
QUOTE = re.compile(r"`[^`\n]*`")


def words_of(text):
    """The words of prose and names, in lower case: `SaysNobody`, `nobody_waits` and "nobody's" all have `nobody`."""
    return [word.lower() for word in WORD.findall(text)]


def is_riddle(word):
    return word in WORDS or (word.endswith("s") and word[:-1] in WORDS)


def snake(name):
    return "_".join(words_of(name))


def riddles_in(name, text, is_page):
    """What is wrong with the file of this name: (line, text), line 0 for the name of the file itself."""
    stem = name.rsplit("/", 1)[-1].split(".", 1)[0]
    found = [(0, f"a file named {stem!r} does not say what is in it")] if stem in NAMES and name not in FINE else []
    for number, line in enumerate(text.splitlines(), 1):
        for word in words_of(QUOTE.sub("", line) if is_page else line):
            if is_riddle(word):
                instead = WORDS.get(word) or WORDS[word[:-1]]
                found.append((number, f"{word!r}: {instead}"))
        if not is_page:
            found += [(number, f"{it!r} does not say what it is") for it in NAMED.findall(line) if snake(it) in NAMES]
    return found
