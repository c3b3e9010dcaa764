//! Texts with wildcards: `LIKE`, and as much of regular expressions as questions to a catalogue have.
//!
//! Both become steps of an automaton whose states are followed all at once, so that no pattern takes more time than the product
//! of its length and the text's.

/// A pattern has at most so many characters.
const PATTERN_CHARS_MAX: usize = 1_024;
/// Groups of a regular expression may be nested so deep.
const GROUPS_MAX: usize = 32;

#[derive(Debug, PartialEq)]
enum Step {
    Character(char),
    Any,
    Class {
        ranges: Vec<(char, char)>,
        is_not: bool,
    },
    /// Goes on at both.
    Split(usize, usize),
    Start,
    End,
}

/// A pattern that texts are compared with.
#[derive(Debug, PartialEq)]
pub(super) struct Pattern {
    steps: Vec<Step>,
    ignores_case: bool,
    /// It may match anywhere inside of the text.
    is_inside: bool,
    /// What a character of a text is compared with at most.
    looks: usize,
}

impl Pattern {
    /// None: it is too long, or has what is not supported.
    pub fn like(written: &str, ignores_case: bool) -> Option<Pattern> {
        let written = folded(written, ignores_case)?;
        let mut steps = Vec::new();
        let mut characters = written.chars();
        while let Some(c) = characters.next() {
            match c {
                '%' => {
                    let at = steps.len();
                    steps.push(Step::Split(at + 1, at + 3));
                    steps.push(Step::Any);
                    steps.push(Step::Split(at, at));
                }
                '_' => steps.push(Step::Any),
                '\\' => steps.push(Step::Character(characters.next()?)),
                c => steps.push(Step::Character(c)),
            }
        }
        Some(Pattern::of(steps, ignores_case, false))
    }

    /// None: it is too long, or has what is not supported.
    pub fn regular(written: &str, ignores_case: bool) -> Option<Pattern> {
        let written = folded(written, ignores_case)?;
        let characters: Vec<char> = written.chars().collect();
        let mut parser = Parser {
            rest: &characters,
            depth: 0,
        };
        let steps = parser.branches()?;
        let is_read = parser.rest.is_empty();
        is_read.then(|| Pattern::of(steps, ignores_case, true))
    }

    fn of(steps: Vec<Step>, ignores_case: bool, is_inside: bool) -> Pattern {
        let looks = |step: &Step| match step {
            Step::Class { ranges, .. } => 1 + ranges.len(),
            _ => 1,
        };
        // At least one: the text is read, and its case may be changed.
        let looks = 1 + steps.iter().map(looks).sum::<usize>();
        Pattern {
            steps,
            ignores_case,
            is_inside,
            looks,
        }
    }

    /// The work of a comparison, in steps.
    pub fn weight(&self, text: &str) -> usize {
        1 + self.looks.saturating_mul(1 + text.len()) / 16
    }

    pub fn matches(&self, text: &str) -> bool {
        let folded;
        let text = match self.ignores_case {
            true => {
                folded = text.to_lowercase();
                &folded
            }
            false => text,
        };
        let mut now = vec![false; self.steps.len() + 1];
        let mut next = now.clone();
        let mut pending = Vec::new();
        let mut characters = text.chars();
        let mut is_start = true;
        loop {
            let character = characters.next();
            if is_start || self.is_inside {
                self.reach(0, is_start, character.is_none(), &mut now, &mut pending);
            }
            if now[self.steps.len()] && (self.is_inside || character.is_none()) {
                return true;
            }
            let Some(c) = character else {
                return false;
            };
            let is_end = characters.as_str().is_empty();
            next.fill(false);
            for (at, step) in self.steps.iter().enumerate().filter(|(at, _)| now[*at]) {
                let is_taken = match step {
                    Step::Character(wanted) => *wanted == c,
                    Step::Any => true,
                    Step::Class { ranges, is_not } => {
                        ranges.iter().any(|(from, to)| (*from..=*to).contains(&c)) != *is_not
                    }
                    Step::Split(..) | Step::Start | Step::End => false,
                };
                if is_taken {
                    self.reach(at + 1, false, is_end, &mut next, &mut pending);
                }
            }
            std::mem::swap(&mut now, &mut next);
            is_start = false;
        }
    }

    /// Marks a step, and those that are reached from it without a character.
    fn reach(
        &self,
        at: usize,
        is_start: bool,
        is_end: bool,
        reached: &mut [bool],
        pending: &mut Vec<usize>,
    ) {
        pending.push(at);
        while let Some(at) = pending.pop() {
            if std::mem::replace(&mut reached[at], true) {
                continue;
            }
            match self.steps.get(at) {
                Some(Step::Split(one, other)) => pending.extend([*one, *other]),
                Some(Step::Start) if is_start => pending.push(at + 1),
                Some(Step::End) if is_end => pending.push(at + 1),
                _ => {}
            }
        }
    }
}

fn folded(written: &str, ignores_case: bool) -> Option<String> {
    let written = match ignores_case {
        true => written.to_lowercase(),
        false => written.to_owned(),
    };
    (written.chars().count() <= PATTERN_CHARS_MAX).then_some(written)
}

struct Parser<'p> {
    rest: &'p [char],
    depth: usize,
}

impl Parser<'_> {
    fn next(&mut self) -> Option<char> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// `a|b|…`
    fn branches(&mut self) -> Option<Vec<Step>> {
        let mut steps = self.branch()?;
        while self.rest.first() == Some(&'|') {
            self.next();
            let other = self.branch()?;
            // Before the first: a split. Between them: a way around the second.
            let (first, second) = (steps.len(), other.len());
            let mut both = vec![Step::Split(1, first + 2)];
            both.extend(moved(steps, 1));
            both.push(Step::Split(first + 2 + second, first + 2 + second));
            both.extend(moved(other, first + 2));
            steps = both;
        }
        Some(steps)
    }

    fn branch(&mut self) -> Option<Vec<Step>> {
        let mut steps = Vec::new();
        while let Some(c) = self.rest.first() {
            if matches!(c, '|' | ')') {
                break;
            }
            let one = self.one()?;
            let at = steps.len();
            let count = one.len();
            match self.rest.first() {
                Some('*') => {
                    self.next();
                    steps.push(Step::Split(at + 1, at + count + 2));
                    steps.extend(moved(one, at + 1));
                    steps.push(Step::Split(at, at));
                }
                Some('+') => {
                    self.next();
                    steps.extend(moved(one, at));
                    steps.push(Step::Split(at, at + count + 1));
                }
                Some('?') => {
                    self.next();
                    steps.push(Step::Split(at + 1, at + count + 1));
                    steps.extend(moved(one, at + 1));
                }
                Some('{') => return None,
                _ => steps.extend(moved(one, at)),
            }
        }
        Some(steps)
    }

    fn one(&mut self) -> Option<Vec<Step>> {
        Some(vec![match self.next()? {
            '^' => Step::Start,
            '$' => Step::End,
            '.' => Step::Any,
            '\\' => match self.next()? {
                c if c.is_alphanumeric() => return None,
                c => Step::Character(c),
            },
            '[' => self.class()?,
            '(' => {
                if self.depth == GROUPS_MAX {
                    return None;
                }
                self.depth += 1;
                if let ['?', ':', rest @ ..] = self.rest {
                    self.rest = rest;
                }
                let inner = self.branches()?;
                self.depth -= 1;
                return (self.next()? == ')').then_some(inner);
            }
            '*' | '+' | '?' | '{' => return None,
            c => Step::Character(c),
        }])
    }

    fn class(&mut self) -> Option<Step> {
        let is_not = self.rest.first() == Some(&'^');
        if is_not {
            self.next();
        }
        let mut ranges = Vec::new();
        loop {
            let from = match self.next()? {
                ']' if !ranges.is_empty() => return Some(Step::Class { ranges, is_not }),
                '[' => return None,
                c => c,
            };
            match self.rest {
                ['-', to, rest @ ..] if *to != ']' => {
                    ranges.push((from, *to));
                    self.rest = rest;
                }
                _ => ranges.push((from, from)),
            }
        }
    }
}

/// Steps that stand somewhere else.
fn moved(steps: Vec<Step>, by: usize) -> impl Iterator<Item = Step> {
    steps.into_iter().map(move |step| match step {
        Step::Split(one, other) => Step::Split(one + by, other + by),
        step => step,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn like(written: &str, text: &str) -> bool {
        let pattern = Pattern::like(written, false).expect("a pattern");
        pattern.matches(text)
    }

    fn regular(written: &str, text: &str) -> bool {
        let pattern = Pattern::regular(written, false).expect("a pattern");
        pattern.matches(text)
    }

    #[test]
    fn patterns() {
        assert!(like("a%c_", "abbcd") && like("%", "") && like("a\\_b", "a_b"));
        assert!(!like("a%c_", "abbc") && !like("a\\_b", "axb") && !like("", "a"));
        assert!(regular("^(per.*)$", "person") && regular("^(p.rson)$", "person"));
        assert!(regular("^pg_temp_", "pg_temp_1") && !regular("^pg_temp_", "a_pg_temp_"));
        assert!(regular("^(a|bc|d)$", "bc") && !regular("^(a|bc|d)$", "bcd"));
        assert!(regular("b+", "abbc") && regular("^[a-c]?x$", "x") && !regular("^[^a-c]$", "b"));
        assert!(regular("", "") && regular("a*$", "b") && !regular("^(per)$", "person"));
        assert!(
            Pattern::regular("a{2}", false).is_none() && Pattern::regular("(a", false).is_none()
        );
        assert!(
            Pattern::regular("\\d", false).is_none() && Pattern::regular("a)", false).is_none()
        );
        let ignoring = Pattern::like("ÄB%", true).expect("a pattern");
        assert!(ignoring.matches("äbc"));
    }

    #[test]
    fn all_that_a_character_is_compared_with_is_work() {
        let weight = |written: &str| {
            let pattern = Pattern::regular(written, false).expect("a pattern");
            pattern.weight(&"x".repeat(1_600))
        };
        let class = format!("[{}]", "a".repeat(1_000));
        assert!(weight(&class) >= weight(&"a".repeat(1_000)));
        assert!(weight("") >= 100, "the text is read");
    }

    #[test]
    fn no_pattern_takes_long() {
        let long = "%a".repeat(400);
        assert!(!like(&long, &"a".repeat(399)));
        let nested = format!(
            "{}a{}",
            "(".repeat(30),
            "*)*".repeat(30).replace("*)*", ")*")
        );
        assert!(!regular(&format!("^{nested}b$"), &"a".repeat(2_000)));
        assert!(Pattern::regular(&"(".repeat(1_000), false).is_none());
        assert!(Pattern::like(&"a".repeat(2_000), false).is_none());
    }

    proptest! {
        #[test]
        fn any_pattern_ends(written in "[ab.*+?|()^$\\[\\]%_\\\\-]{0,12}", text in "[ab]{0,8}") {
            for pattern in [Pattern::like(&written, true), Pattern::regular(&written, false)] {
                let _ = pattern.map(|pattern| pattern.matches(&text));
            }
        }
    }
}
