//! TypeScript bindings for modules that send messages to this one by outbox tables (07 §8.3), for `lightcone/server`.

use std::collections::BTreeSet;

use lightcone_schema::case::to_camel;
use lightcone_schema::ModuleDef;

use super::members::Member;
use super::style::{import, property, quoted, start, Context};
use super::{import_types, types};
use crate::bindings::{GeneratedFile, Options};
use crate::error::{Error, Result};
use crate::module::{Function, Level};
use crate::text::Text;

pub(crate) fn generate(
    level: &Level,
    def: &ModuleDef,
    package: &str,
    options: &Options,
) -> Result<Vec<GeneratedFile>> {
    let package = &format!("{package}/server");
    let context = Context { package, options };
    let mut mentioned = BTreeSet::new();
    for (_, ty) in level.reducers.iter().flat_map(|reducer| &reducer.params) {
        level.types.mentioned(ty, &mut mentioned);
    }
    let mut text = start();
    let has_params = level.reducers.iter().any(|r| !r.params.is_empty());
    let mut uses = vec!["type RemoteReducer"];
    uses.extend(has_params.then_some("t"));
    import(&mut text, &context, &uses);
    import_types(&mut text, &mentioned);
    text.blank()
        .line("/** The reducers that rows of outbox tables may call. */");
    let mut written = Ok(());
    let close = "} satisfies Record<string, __RemoteReducer>;";
    text.block("export const reducers = {", close, |text| {
        let mut all = level.reducers.iter();
        written = all.try_for_each(|reducer| write(text, level, reducer, def));
    });
    written?;
    Ok(vec![
        GeneratedFile::new("types.ts".to_owned(), types::types(&context, level)?),
        GeneratedFile::new("index.ts".to_owned(), text.finish()),
    ])
}

fn write(text: &mut Text, level: &Level, reducer: &Function, def: &ModuleDef) -> Result<()> {
    let place = format!("reducer `{}`", reducer.name);
    let known = def.reducer(&reducer.name);
    let (_, known) = known.ok_or_else(|| Error::missing_type(place.clone()))?;
    // The names in the database are those that columns are found by.
    let params = reducer.params.iter();
    let params = params.map(|(name, ty)| Member::new(&level.types, name.clone(), ty, &place));
    let params = params.collect::<Result<Vec<_>>>()?;
    let hash: Vec<String> = known.signature_hash().0.iter().map(u8::to_string).collect();
    let key = to_camel(&reducer.accessor.replace('.', "_"));
    text.block(format!("{}: {{", property(&key)), "},", |text| {
        text.line(format!("name: {},", quoted(&reducer.name)));
        Member::object(text, "params: {", "},", &params);
        text.line(format!(
            "signatureHash: Uint8Array.of({}),",
            hash.join(", ")
        ));
    });
    Ok(())
}
