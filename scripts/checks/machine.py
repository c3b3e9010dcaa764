"""What the machine of a database may not use: its files compute, and who drives them waits, locks and reads clocks (docs/design/machine.md)."""

import re

from checks.rust_text import code_of, split_tests, tokens

# Places for answers are no threads.
ALLOWED = ("tokio :: sync :: oneshot",)
FORBIDDEN = (
    r"tokio",
    r"std :: thread",
    r"thread :: (?:sleep|spawn|park|yield_now|Builder)",
    r"(?:Instant|SystemTime|Timestamp) :: now",
    r"SystemTime",
    r"(?:Mutex|RwLock|Condvar|Barrier|OnceLock)",
    r"\. (?:lock|try_lock|blocking_recv|blocking_send|block_on|recv|recv_timeout|wait_timeout) \(",
)


def uses_of(source):
    """What of the forbidden things the product's code of a file uses: (line, text)."""
    product, _, _ = split_tests(code_of(tokens(source)))
    found = []
    text, starts = "", []
    for token in product:
        if token.kind in ("text", "char"):
            continue
        starts.append((len(text), token.line))
        text += token.text + " "
    for allowed in ALLOWED:
        text = text.replace(allowed, " " * len(allowed))
    for pattern in FORBIDDEN:
        for match in re.finditer(rf"(?<![\w]){pattern}(?![\w])", text):
            line = max(line for start, line in starts if start <= match.start())
            found.append((line, match.group().replace(" ", "")))
    return sorted(set(found))
