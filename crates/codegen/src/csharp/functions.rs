//! `Reducers/<Pascal>.g.cs` and `Procedures/<Pascal>.g.cs`.

use super::style::{braced, parameter, pascal, UNIT};
use super::types::{csharp_type, fields, product_class, Field};
use crate::error::Result;
use crate::module::{Function, Level};
use crate::text::Text;

/// The parameters of a function, for its method and for the class that carries them.
struct Parameters {
    fields: Vec<Field>,
    /// `uint id, string name`.
    declared: String,
    /// `id, name`.
    names: String,
}

impl Parameters {
    fn new(level: &Level, function: &Function, class: &str) -> Result<Parameters> {
        let place = format!("a parameter of `{}`", function.name);
        let parts = function.params.iter().map(|(name, ty)| (&name[..], ty));
        let fields = fields(&level.types, parts, class, &place)?;
        let mut declared = Vec::new();
        let mut names = Vec::new();
        for ((name, _), field) in function.params.iter().zip(&fields) {
            let name = parameter(name)?;
            declared.push(format!("{} {name}", field.ty));
            names.push(name);
        }
        Ok(Parameters {
            fields,
            declared: declared.join(", "),
            names: names.join(", "),
        })
    }

    /// Text with a comma behind or before it, unless it is empty.
    fn before(parameters: &str) -> String {
        match parameters {
            "" => String::new(),
            _ => format!("{parameters}, "),
        }
    }
}

pub(super) fn reducer(level: &Level, reducer: &Function) -> Result<Text> {
    let name = pascal(&reducer.accessor)?;
    let parameters = Parameters::new(level, reducer, &name)?;
    let mut text = Text::new(UNIT);
    braced(
        &mut text,
        "public sealed partial class RemoteReducers : RemoteBase",
        |text| {
            let comma = if parameters.declared.is_empty() {
                ""
            } else {
                ", "
            };
            text.line(format!(
                "public delegate void {name}Handler(ReducerEventContext ctx{comma}{});",
                parameters.declared
            ));
            text.line(format!("public event {name}Handler? On{name};"));
            text.blank();
            let head = format!("public void {name}({})", parameters.declared);
            braced(text, &head, |text| {
                text.line(format!(
                    "conn.InternalCallReducer(new Reducer.{name}({}));",
                    parameters.names
                ));
            });
            text.blank();
            invoke(text, &name, &parameters.fields);
        },
    );
    text.blank();
    braced(&mut text, "public abstract partial class Reducer", |text| {
        let bases = " : Reducer, IReducerArgs";
        product_class(text, &name, bases, &parameters.fields, |text| {
            text.blank().line(format!(
                "string IReducerArgs.ReducerName => \"{}\";",
                reducer.name
            ));
        });
    });
    Ok(text)
}

/// Passes the outcome of a call to its listeners.
fn invoke(text: &mut Text, name: &str, fields: &[Field]) {
    let head = format!("public bool Invoke{name}(ReducerEventContext ctx, Reducer.{name} args)");
    braced(text, &head, |text| {
        braced(text, &format!("if (On{name} == null)"), |text| {
            text.line("InvokeUnhandledReducerError(ctx);")
                .line("return false;");
        });
        let values: String = fields
            .iter()
            .map(|f| format!(", args.{}", f.name))
            .collect();
        text.line(format!("On{name}(ctx{values});"));
        text.line("return true;");
    });
}

pub(super) fn procedure(level: &Level, procedure: &Function) -> Result<Text> {
    let name = pascal(&procedure.accessor)?;
    let args = format!("{name}Args");
    let parameters = Parameters::new(level, procedure, &args)?;
    let place = format!("the result of `{}`", procedure.name);
    let returned = csharp_type(&level.types, &procedure.return_type, &place)?;
    let value = [("Value", &procedure.return_type)];
    let result = fields(&level.types, value, &name, &place)?;
    let declared = Parameters::before(&parameters.declared);
    let mut text = Text::new(UNIT);
    braced(
        &mut text,
        "public sealed partial class RemoteProcedures : RemoteBase",
        |text| {
            let head =
                format!("public void {name}({declared}ProcedureCallback<{returned}> callback)");
            braced(text, &head, |text| {
                // The result travels as a class of its own, whatever the procedure returns.
                text.line(format!(
                    "ProcedureCallback<Procedure.{name}> forward = (ctx, result) =>"
                ));
                text.block("{", "};", |text| {
                    braced(text, "if (result.IsSuccess && result.Value != null)", |text| {
                        text.line(format!(
                            "callback(ctx, ProcedureCallbackResult<{returned}>.Success(result.Value.{}));",
                            result[0].name
                        ));
                        text.line("return;");
                    });
                    text.line(format!(
                        "callback(ctx, ProcedureCallbackResult<{returned}>.Failure(result.Error!));"
                    ));
                });
                text.line(format!(
                    "conn.InternalCallProcedure(new Procedure.{args}({}), forward);",
                    parameters.names
                ));
            });
        },
    );
    text.blank();
    braced(
        &mut text,
        "public abstract partial class Procedure",
        |text| {
            product_class(text, &name, "", &result, |_| {});
            text.blank();
            let bases = " : Procedure, IProcedureArgs";
            product_class(text, &args, bases, &parameters.fields, |text| {
                text.blank().line(format!(
                    "string IProcedureArgs.ProcedureName => \"{}\";",
                    procedure.name
                ));
            });
        },
    );
    Ok(text)
}
