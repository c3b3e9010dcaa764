//! Calls of functions: of which of them there is a value, and of which there are several.

use sqlparser::ast::{OrderByExpr, WindowSpec};

use super::super::column_type::Type;
use super::super::failure::{Done, Failure};
use super::super::functions::{aggregate, function, no_such_function, series};
use super::super::plan::{self, Bound, Extra, Sorted};
use super::expressions::Typed;
use super::scope::Scope;
use super::syntax::{apart, direction, refuse_if, Call, Part as _};
use super::Binder;

impl Binder<'_> {
    pub(super) fn call(&mut self, call: Call<'_>, scope: &Scope<'_>) -> Done<Typed> {
        let name = call.name.as_str();
        if let Some(window) = call.over {
            apart!(window, WindowSpec { partition_by order_by } without { window_name window_frame } passing {}, "a frame of a window");
            refuse_if(name != "row_number", &format!("{name}() OVER"))?;
            let (partition, _) = self.plainly(|binder| binder.list(partition_by.iter(), scope))?;
            let order = self.sorted(order_by, scope)?;
            return self.extra(Extra::RowNumber { partition, order }, Type::INT8);
        }
        let count = call.arguments.len();
        let is_aggregate = aggregate(name, count, None).is_some();
        let is_plain = !call.is_distinct && call.order.is_empty() && call.filter.is_none();
        refuse_if(!is_aggregate && !is_plain, &format!("a clause of {name}()"))?;
        if let Some((series, columns)) = series(name, count, None) {
            let arguments = call.arguments.into_iter();
            let (arguments, types) = self.plainly(|binder| binder.list(arguments, scope))?;
            let ty = match (&columns[..], types.first()) {
                ([_], Some(ty)) if name == "unnest" => ty.element(),
                ([(_, ty)], _) => ty.clone(),
                _ => Type::Pair,
            };
            return self.extra(Extra::Series { series, arguments }, ty);
        }
        if is_aggregate {
            return scope.of_all_rows(|| self.aggregate(call, scope));
        }
        let arguments = call.arguments.into_iter();
        let (arguments, types) = self.list(arguments, scope)?;
        let is_pattern = name == "substring" && types.get(1) == Some(&Type::TEXT);
        refuse_if(is_pattern, "substring() with a pattern")?;
        let of_values = function(name, &types).map(|(at, ty)| (plan::Call::Function(at), ty));
        let of_session = || self.session.function(name, count);
        let of_session = || of_session().map(|(at, ty)| (plan::Call::OfSession(at), ty));
        let found = of_values.or_else(of_session);
        let (call, ty) = found.ok_or_else(|| no_such_function(name, &types))?;
        Ok((Bound::Call(call, arguments), ty))
    }

    fn aggregate(&mut self, call: Call<'_>, scope: &Scope<'_>) -> Done<Typed> {
        let arguments = call.arguments.into_iter();
        let (arguments, types) = self.plainly(|binder| binder.list(arguments, scope))?;
        let found = aggregate(&call.name, types.len(), types.first().cloned());
        let (aggregate, ty) = found.expect("it is one");
        let filter = match call.filter {
            Some(filter) => Some(self.plainly(|binder| binder.expr(filter, scope))?.0),
            None => None,
        };
        let means = |is_around| {
            let mut all = arguments.iter().chain(&filter);
            all.any(|bound| bound.means(is_around))
        };
        refuse_if(
            means(true) && !means(false),
            "an aggregate of a question around it",
        )?;
        let made = Extra::Aggregate {
            aggregate,
            arguments,
            is_distinct: call.is_distinct,
            order: self.sorted(call.order, scope)?,
            filter,
        };
        self.extra(made, ty)
    }

    fn sorted(&mut self, order: &[OrderByExpr], scope: &Scope<'_>) -> Done<Vec<Sorted>> {
        let mut sorted = Vec::new();
        for by in order {
            let (bound, _) = self.plainly(|binder| binder.expr(&by.expr, scope))?;
            let (is_descending, nulls_first) = direction(by)?;
            sorted.push((bound, is_descending, nulls_first));
        }
        Ok(sorted)
    }

    fn extra(&mut self, made: Extra, ty: Type) -> Done<Typed> {
        let list = self.extras.as_mut();
        let list = list.ok_or(Failure::from(
            "a function of several rows stands where there is one",
        ))?;
        list.push(made);
        Ok((Bound::Extra(list.len() - 1), ty))
    }
}
