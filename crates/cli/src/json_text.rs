//! JSON texts laid out for people, digits untouched.

use lightcone_types::json::{node_to_json, write_string, Node, NodeKind};

/// The value with two spaces per level, numbers exactly as they came.
pub fn pretty(node: &Node<'_>) -> String {
    let mut out = String::new();
    write(node, 0, &mut out);
    out
}

/// The value on one line without spaces, numbers exactly as they came.
pub fn compact(node: &Node<'_>) -> String {
    let mut out = String::new();
    node_to_json(node, &mut out);
    out
}

fn write(node: &Node<'_>, depth: usize, out: &mut String) {
    match &node.kind {
        NodeKind::Array(elements) if !elements.is_empty() => {
            write_lines("[]", elements, depth, out, |element, out| {
                write(element, depth + 1, out);
            });
        }
        NodeKind::Object(entries) if !entries.is_empty() => {
            write_lines("{}", entries, depth, out, |(key, value), out| {
                write_string(key, out);
                out.push_str(": ");
                write(value, depth + 1, out);
            });
        }
        _ => node_to_json(node, out),
    }
}

/// Writes things between brackets, a line each.
fn write_lines<T>(
    brackets: &str,
    things: &[T],
    depth: usize,
    out: &mut String,
    mut write: impl FnMut(&T, &mut String),
) {
    let (open, close) = brackets.split_at(1);
    out.push_str(open);
    for (index, thing) in things.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        out.push_str(&format!("{comma}\n{}", "  ".repeat(depth + 1)));
        write(thing, out);
    }
    out.push_str(&format!("\n{}{close}", "  ".repeat(depth)));
}

#[cfg(test)]
mod tests {
    use super::{compact, pretty};

    #[test]
    fn large_numbers_and_nesting_survive() {
        let text =
            r#"{"a":[1,340282366920938463463374607431768211455,[]],"b":{},"c":{"d":"x\"y"}}"#;
        let node = lightcone_types::json::parse(text).expect("JSON");
        assert_eq!(compact(&node), text);
        assert_eq!(
            pretty(&node),
            "{\n  \"a\": [\n    1,\n    340282366920938463463374607431768211455,\n    []\n  ],\n  \"b\": {},\n  \"c\": {\n    \"d\": \"x\\\"y\"\n  }\n}"
        );
    }
}
