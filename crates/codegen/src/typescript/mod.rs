//! TypeScript bindings (07 §8.1): the list of files, and those of single tables and functions.

mod index;
mod members;
pub(crate) mod remote;
mod style;
mod types;

use std::collections::BTreeSet;

use lightcone_schema::case::to_camel;

use self::members::{builder, Member};
use self::style::{import, quoted, start, Context};
use crate::bindings::{GeneratedFile, Options};
use crate::error::Result;
use crate::module::{file_stem, Function, Level, Module, Table};
use crate::text::Text;

pub(crate) fn generate(
    module: &Module,
    package: &str,
    options: &Options,
) -> Result<Vec<GeneratedFile>> {
    let context = Context { package, options };
    let mut files = Vec::new();
    for level in &module.levels {
        let directory = level.directory();
        let mut add = |name: &str, text: String| {
            let path = format!("{directory}{name}.ts");
            files.push(GeneratedFile::new(path, text));
        };
        add("types", types::types(&context, level)?);
        for table in &level.tables {
            let text = table_file(&context, level, table)?;
            add(&file_stem(&table.accessor, "table"), text);
        }
        for reducer in &level.reducers {
            let text = reducer_file(&context, level, reducer)?;
            add(&file_stem(&reducer.accessor, "reducer"), text);
        }
        for procedure in &level.procedures {
            let text = procedure_file(&context, level, procedure)?;
            add(&file_stem(&procedure.accessor, "procedure"), text);
        }
    }
    for (path, text) in [
        ("types/reducers.ts", types::reducers(&context, module)),
        ("types/procedures.ts", types::procedures(&context, module)),
        ("index.ts", index::index(&context, module)?),
    ] {
        files.push(GeneratedFile::new(path.to_owned(), text));
    }
    Ok(files)
}

/// Imports named types from the level's `types.ts`.
fn import_types(text: &mut Text, types: &BTreeSet<&str>) {
    if types.is_empty() {
        return;
    }
    text.block("import {", "} from \"./types\";", |text| {
        for name in types {
            text.line(format!("{name},"));
        }
    });
}

fn table_file(context: &Context<'_>, level: &Level, table: &Table) -> Result<String> {
    let mut mentioned = BTreeSet::new();
    let mut members = Vec::new();
    for column in &table.columns {
        level.types.mentioned(&column.ty, &mut mentioned);
        let key = to_camel(&column.accessor);
        let place = format!("column `{}` of `{}`", column.name, table.name);
        let mut member = Member::new(&level.types, key, &column.ty, &place)?;
        if column.is_primary_key {
            member.builder.push_str(".primaryKey()");
        }
        if column.name != member.key {
            let name = quoted(&column.name);
            member.builder.push_str(&format!(".name({name})"));
        }
        members.push(member);
    }
    let mut text = start();
    import(&mut text, context, &["t"]);
    import_types(&mut text, &mentioned);
    text.blank()
        .block("export default __t.row({", "});", |text| {
            members.iter().for_each(|member| member.write(text));
        });
    Ok(text.finish())
}

/// The parameters of a function as members, and the types in them.
fn parameters<'a>(
    level: &'a Level,
    function: &'a Function,
) -> Result<(Vec<Member>, BTreeSet<&'a str>)> {
    let mut mentioned = BTreeSet::new();
    let mut members = Vec::new();
    for (name, ty) in &function.params {
        level.types.mentioned(ty, &mut mentioned);
        let place = format!("parameter `{name}` of `{}`", function.name);
        members.push(Member::new(&level.types, to_camel(name), ty, &place)?);
    }
    Ok((members, mentioned))
}

fn reducer_file(context: &Context<'_>, level: &Level, reducer: &Function) -> Result<String> {
    let (members, mentioned) = parameters(level, reducer)?;
    let mut text = start();
    let uses: &[&str] = if members.is_empty() { &[] } else { &["t"] };
    import(&mut text, context, uses);
    import_types(&mut text, &mentioned);
    text.blank();
    Member::object(&mut text, "export default {", "};", &members);
    Ok(text.finish())
}

fn procedure_file(context: &Context<'_>, level: &Level, procedure: &Function) -> Result<String> {
    let (members, mut mentioned) = parameters(level, procedure)?;
    let types = &level.types;
    types.mentioned(&procedure.return_type, &mut mentioned);
    let place = format!("the result of `{}`", procedure.name);
    let returned = builder(types, &procedure.return_type, &place)?;
    let mut text = start();
    let uses_builders = !members.is_empty() || returned.contains("__t.");
    import(&mut text, context, if uses_builders { &["t"] } else { &[] });
    import_types(&mut text, &mentioned);
    text.blank();
    Member::object(&mut text, "export const params = {", "};", &members);
    text.line(format!("export const returnType = {returned};"));
    Ok(text.finish())
}
