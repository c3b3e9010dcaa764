//! JSON texts laid out for people, digits untouched.

use lightcone_types::json::{node_to_json, write_string, Node, NodeKind};

/// The value with two spaces per level, numbers exactly as they came.
pub fn pretty(node: &Node<'_>) -> String {
    let (open, lines, close): (_, Vec<String>, _) = match &node.kind {
        NodeKind::Array(elements) if !elements.is_empty() => {
            ("[", elements.iter().map(pretty).collect(), "]")
        }
        NodeKind::Object(entries) if !entries.is_empty() => {
            let entries = entries.iter().map(|(key, value)| {
                let mut line = String::new();
                write_string(key, &mut line);
                line + ": " + &pretty(value)
            });
            ("{", entries.collect(), "}")
        }
        _ => return compact(node),
    };
    // Texts have no line breaks of their own in JSON.
    let lines = lines.join(",\n").replace('\n', "\n  ");
    format!("{open}\n  {lines}\n{close}")
}

/// The value on one line without spaces, numbers exactly as they came.
pub fn compact(node: &Node<'_>) -> String {
    let mut out = String::new();
    node_to_json(node, &mut out);
    out
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
