//! The text of a migration plan and the token that confirms it (02 §14.3, §14.7).

use lightcone_types::{Hash, Identity};

/// How a plan is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlanStyle {
    #[default]
    AnsiColor,
    NoColor,
}

const TITLE: &str = "Database Migration Plan";
const RULE_CHARS: usize = 60;

/// The plan for an unchanged schema: the header and nothing else.
pub fn unchanged_plan_text(style: PlanStyle) -> String {
    let rule = "━".repeat(RULE_CHARS);
    let title = match style {
        PlanStyle::NoColor => TITLE.to_owned(),
        // Every coloured piece starts with a reset.
        PlanStyle::AnsiColor => format!("\u{1b}[0m\u{1b}[1m\u{1b}[34m{TITLE}\u{1b}[0m"),
    };
    format!("{rule}\n{title}\n{rule}\n\n")
}

/// The token with which a publisher confirms the update of one database from one program to another.
/// On the wire it is [`Hash::to_json_u256`].
pub fn migration_token(database: Identity, old_program: Hash, new_program: Hash) -> Hash {
    let text = format!(
        "{}{}{}",
        database.to_hex(),
        old_program.to_hex(),
        new_program.to_hex()
    );
    Hash::keccak256(text.as_bytes())
}
