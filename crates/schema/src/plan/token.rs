//! The token that confirms a plan (02 §14.3).

use lightcone_types::{Hash, Identity};

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
