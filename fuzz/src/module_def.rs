//! Module definitions.

use lightcone_schema::raw::{RawModuleDef, RawModuleDefV10};
use lightcone_schema::{plan, ModuleDef, PlanStyle, RawVersion, SequentialIds};
use lightcone_types::bsatn::{Decode, Encode};

/// Decodes a module definition, checks that it encodes to the bytes it was read from, validates it,
/// and if it is valid runs it through everything that is derived from a definition.
pub fn fuzz_module_def(data: &[u8]) {
    let Ok(raw) = RawModuleDef::from_slice(data) else {
        return;
    };
    let encoded = raw.to_vec();
    assert_eq!(
        data.get(..encoded.len()),
        Some(&encoded[..]),
        "decoding and encoding must agree"
    );
    match ModuleDef::validate(raw) {
        Err(errors) => drop(errors.to_string()),
        Ok(def) => {
            let same = plan(&def, &def).expect("a definition takes over its own data");
            assert!(
                same.keeps_schema(&def, &def) && !same.breaks_clients(),
                "a definition must not differ from itself"
            );
            plan_from_and_to_nothing(&def);
            let mut ids = SequentialIds::default();
            for table in &def.tables {
                table.to_schema(&mut ids);
            }
            for view in &def.views {
                view.to_backing_schema(def.version == RawVersion::V10, &mut ids);
            }
            for reducer in &def.reducers {
                let _ = reducer.validate_args(data);
            }
            for version in [RawVersion::V9, RawVersion::V10] {
                let text = def.schema_json(version);
                // Deeply nested types are valid but beyond the JSON reader's limit.
                if let Ok(raw) = RawModuleDef::from_schema_json(version, &text) {
                    assert_eq!(
                        raw.to_schema_json(),
                        text,
                        "JSON must read back as it was written"
                    );
                }
            }
        }
    }
}

fn plan_from_and_to_nothing(def: &ModuleDef) {
    let nothing = RawModuleDef::V10(RawModuleDefV10 { sections: vec![] });
    let nothing = ModuleDef::validate(nothing).expect("an empty definition is valid");
    for (old, new) in [(&nothing, def), (def, &nothing), (def, def)] {
        let plan = plan(old, new).expect("tables come and go");
        drop(plan.text(old, new, PlanStyle::AnsiColor));
    }
}
