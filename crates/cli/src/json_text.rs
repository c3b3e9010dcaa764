//! JSON texts laid out for people, digits untouched.

use lightcone_types::json::{write_string, Node, NodeKind};

/// The value with two spaces per level, numbers exactly as they came.
pub fn pretty(node: &Node<'_>) -> String {
    let mut out = String::new();
    write(node, Some(0), &mut out);
    out
}

/// The value on one line without spaces, numbers exactly as they came.
pub fn compact(node: &Node<'_>) -> String {
    let mut out = String::new();
    write(node, None, &mut out);
    out
}

/// `depth` counts the levels of indentation, if there are to be any.
fn write(node: &Node<'_>, depth: Option<usize>, out: &mut String) {
    let deeper = depth.map(|depth| depth + 1);
    let colon = if depth.is_some() { ": " } else { ":" };
    let new_line = |out: &mut String, depth: Option<usize>| {
        if let Some(depth) = depth {
            out.push('\n');
            out.extend(std::iter::repeat_n("  ", depth));
        }
    };
    match &node.kind {
        NodeKind::Null => out.push_str("null"),
        NodeKind::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        NodeKind::Number(text) => out.push_str(text),
        NodeKind::String(text) => write_string(text, out),
        NodeKind::Array(elements) if elements.is_empty() => out.push_str("[]"),
        NodeKind::Array(elements) => {
            out.push('[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                new_line(out, deeper);
                write(element, deeper, out);
            }
            new_line(out, depth);
            out.push(']');
        }
        NodeKind::Object(entries) if entries.is_empty() => out.push_str("{}"),
        NodeKind::Object(entries) => {
            out.push('{');
            for (index, (key, value)) in entries.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                new_line(out, deeper);
                write_string(key, out);
                out.push_str(colon);
                write(value, deeper, out);
            }
            new_line(out, depth);
            out.push('}');
        }
    }
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
