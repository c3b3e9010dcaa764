//! The files of named types.

use lightcone_schema::case::{to_camel, to_pascal};
use lightcone_types::AlgebraicType;

use super::members::Member;
use super::style::{import, item_name, item_path, start, Context};
use crate::error::Result;
use crate::module::{Definition, Function, Level, Module, Types};

/// `types.ts` of a level: all its named types, also private ones.
pub(super) fn types(context: &Context<'_>, level: &Level) -> Result<String> {
    let types = &level.types;
    let mut definitions = Vec::new();
    for (name, reference) in &types.sorted {
        // In older modules the arguments of a reducer are a type that nothing refers to.
        let mut names = level.reducers.iter().map(|r| to_pascal(&r.accessor));
        let is_arguments = names.any(|reducer| reducer == *name);
        if is_arguments && !types.is_needed(name, level) {
            continue;
        }
        let place = format!("type `{name}`");
        let (open, members) = match types.definition(*reference, &place)? {
            Definition::Product(fields) => ("object", members(types, name, fields, to_camel)?),
            Definition::Sum(variants) => ("enum", members(types, name, variants, to_pascal)?),
        };
        definitions.push((name, open, members));
    }

    let mut members = definitions.iter().flat_map(|(_, _, members)| members);
    let any_recursive = members.any(|member| member.recursive);
    let mut uses = Vec::new();
    uses.extend(any_recursive.then_some("type TypeBuilder"));
    uses.extend((!definitions.is_empty()).then_some("t"));
    uses.extend(any_recursive.then_some("type AlgebraicTypeType"));
    uses.extend((!definitions.is_empty()).then_some("type Infer"));
    let mut text = start();
    import(&mut text, context, &uses);
    if definitions.is_empty() {
        // A file without imports and exports is no module.
        text.blank().line("export {};");
    }
    for (name, open, members) in definitions {
        text.blank();
        let object = format!("export const {name} = __t.{open}(\"{name}\", {{");
        Member::object(&mut text, &object, "});", &members);
        text.line(format!("export type {name} = __Infer<typeof {name}>;"));
    }
    Ok(text.finish())
}

fn members(
    types: &Types,
    owner: &str,
    parts: Vec<(&str, &AlgebraicType)>,
    key: impl Fn(&str) -> String,
) -> Result<Vec<Member>> {
    let place = format!("type `{owner}`");
    let mut members = Vec::new();
    for (name, ty) in parts {
        let mut member = Member::new(types, key(name), ty, &place)?;
        let mut mentioned = std::collections::BTreeSet::new();
        types.mentioned(ty, &mut mentioned);
        let leads_back = |name: &&str| *name == owner || types.reaches(name, owner);
        member.recursive = mentioned.iter().any(leads_back);
        members.push(member);
    }
    Ok(members)
}

/// `types/reducers.ts`: the parameters of each reducer.
pub(super) fn reducers(context: &Context<'_>, module: &Module) -> String {
    let all: Vec<_> = module.reducers().collect();
    functions(context, &all, "reducer", |name, import| {
        format!("export type {name}Params = __Infer<typeof {import}>;\n")
    })
}

/// `types/procedures.ts`: the parameters and result of each procedure.
pub(super) fn procedures(context: &Context<'_>, module: &Module) -> String {
    let all: Vec<_> = module.procedures().collect();
    functions(context, &all, "procedure", |name, import| {
        let args = format!("export type {name}Args = __Infer<typeof {import}.params>;\n");
        args + &format!("export type {name}Result = __Infer<typeof {import}.returnType>;\n")
    })
}

fn functions(
    context: &Context<'_>,
    functions: &[(&Level, &Function)],
    kind: &str,
    exported: impl Fn(&str, &str) -> String,
) -> String {
    let mut text = start();
    let infer = (!functions.is_empty()).then_some("type Infer");
    import(&mut text, context, infer.as_slice());
    text.blank();
    if functions.is_empty() {
        text.line("export {};");
        return text.finish();
    }
    let kind_name = to_pascal(kind);
    let mut exports = String::new();
    for (level, function) in functions {
        let import = item_name(level, &function.accessor, &kind_name);
        let path = item_path(level, &function.accessor, kind);
        let all = if kind == "procedure" { "* as " } else { "" };
        text.line(format!("import {all}{import} from \"../{path}\";"));
        exports += &exported(&item_name(level, &function.accessor, ""), &import);
    }
    text.blank().lines(&exports);
    text.finish()
}
