//! `Reducers/<Pascal>.g.cs` and `Procedures/<Pascal>.g.cs`.

use super::style::{parameter, pascal, UNIT};
use super::types::{csharp_type, fields, product_class, Field};
use crate::error::Result;
use crate::module::{Function, Level};
use crate::text::Text;

/// The parameters of a function, for its method and for the class that carries them.
struct Parameters {
    fields: Vec<Field>,
    /// `uint id`, `string name`.
    declared: Vec<String>,
    /// `id, name`.
    names: String,
}

impl Parameters {
    fn new(level: &Level, function: &Function, class: &str) -> Result<Parameters> {
        let place = format!("a parameter of `{}`", function.name);
        let parts = function.params.iter().map(|(name, ty)| (&name[..], ty));
        let fields = fields(&level.types, parts, class, &place)?;
        let names = function.params.iter().map(|(name, _)| parameter(name));
        let names = names.collect::<Result<Vec<_>>>()?;
        let declared = fields.iter().zip(&names);
        Ok(Parameters {
            declared: declared
                .map(|(field, name)| format!("{} {name}", field.ty))
                .collect(),
            fields,
            names: names.join(", "),
        })
    }
}

pub(super) fn reducer(level: &Level, reducer: &Function) -> Result<Text> {
    let name = pascal(&reducer.accessor)?;
    let parameters = Parameters::new(level, reducer, &name)?;
    let declared = parameters.declared.join(", ");
    let context = ["ReducerEventContext ctx".to_owned()];
    let with_context = [&context[..], &parameters.declared[..]].concat();
    let values = parameters.fields.iter();
    let values = values.map(|field| format!(", args.{}", field.name));
    let more = format!("\nstring IReducerArgs.ReducerName => \"{}\";", reducer.name);
    let class = product_class(&name, " : Reducer, IReducerArgs", &parameters.fields, &more);
    let mut text = Text::new(UNIT);
    text.template(
        include_str!("reducer.cs.txt"),
        &[
            ("name", &name),
            ("context and declared", &with_context.join(", ")),
            ("declared", &declared),
            ("names", &parameters.names),
            ("values", &values.collect::<String>()),
            ("class", &class),
        ],
    );
    Ok(text)
}

/// The result travels as a class of its own, whatever the procedure returns.
pub(super) fn procedure(level: &Level, procedure: &Function) -> Result<Text> {
    let name = pascal(&procedure.accessor)?;
    let args = format!("{name}Args");
    let parameters = Parameters::new(level, procedure, &args)?;
    let place = format!("the result of `{}`", procedure.name);
    let returned = csharp_type(&level.types, &procedure.return_type, &place)?;
    let value = [("Value", &procedure.return_type)];
    let result = fields(&level.types, value, &name, &place)?;
    let callback = [format!("ProcedureCallback<{returned}> callback")];
    let with_callback = [&parameters.declared[..], &callback[..]].concat();
    let more = format!(
        "\nstring IProcedureArgs.ProcedureName => \"{}\";",
        procedure.name
    );
    let bases = " : Procedure, IProcedureArgs";
    let args_class = product_class(&args, bases, &parameters.fields, &more);
    let mut text = Text::new(UNIT);
    text.template(
        include_str!("procedure.cs.txt"),
        &[
            ("name", &name),
            ("declared and callback", &with_callback.join(", ")),
            ("returned", &returned),
            ("value", &result[0].name),
            ("args", &args),
            ("names", &parameters.names),
            ("result class", &product_class(&name, "", &result, "")),
            ("args class", &args_class),
        ],
    );
    Ok(text)
}
