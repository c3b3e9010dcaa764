//! Case conversion of names (02 §8.2). The format was defined with version 0.6.0 of the crate `convert_case`, whose rules
//! changed after it.

use convert_case::{Case, Casing};

/// `countFresh` → `count_fresh`: tables, functions, views, columns, product fields.
pub fn to_snake(name: &str) -> String {
    name.to_case(Case::Snake)
}

/// `RedApple` → `redApple`: sum variants.
pub fn to_camel(name: &str) -> String {
    name.to_case(Case::Camel)
}

/// `player_row` → `PlayerRow`: types and the segments of their scope.
pub fn to_pascal(name: &str) -> String {
    name.to_case(Case::Pascal)
}
