//! Expressions: operators by how strongly they bind, and what they stand between.

use super::super::super::words::Piece;
use super::super::syntax::*;
use super::{Parsed, Parser, HEIGHT_MAX, RESERVED};

impl Parser<'_> {
    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        self.binding(0)
    }

    /// An expression of operators that bind at least so strongly.
    fn binding(&mut self, strength: u8) -> Parsed<Expr> {
        self.deeper(|parser| {
            let outer = std::mem::take(&mut parser.height);
            let mut left = parser.prefix()?;
            parser.height += 1;
            loop {
                let is_done;
                (left, is_done) = parser.operator(left, strength)?;
                if is_done {
                    break;
                }
                if !matches!(left, Expr::And(_) | Expr::Or(_)) {
                    parser.height += 1;
                }
                if parser.height > HEIGHT_MAX {
                    return Err(format!(
                        "more than {HEIGHT_MAX} operators stand behind and in each other"
                    ));
                }
            }
            parser.height = parser.height.max(outer);
            Ok(left)
        })
    }

    fn prefix(&mut self) -> Parsed<Expr> {
        if self.takes(&["not"]) {
            return Ok(Expr::Not(Box::new(self.binding(NOT)?)));
        }
        if self.takes_symbol('-') {
            return Ok(Expr::Negative(Box::new(self.binding(UNARY)?)));
        }
        if self.takes_symbol('+') {
            return self.binding(UNARY);
        }
        self.primary()
    }

    /// What an operator makes of what stands before it. True: there was none.
    fn operator(&mut self, left: Expr, strength: u8) -> Parsed<(Expr, bool)> {
        let more = |expr| Ok((expr, false));
        let done = |expr| Ok((expr, true));
        if self.takes_symbols(&[':', ':']) {
            let name = self.type_name()?;
            return more(Expr::Cast(Box::new(left), name));
        }
        if self.takes_symbol('[') {
            let at = self.expr()?;
            self.symbol(']')?;
            return more(Expr::Element(Box::new((left, at))));
        }
        if let [Piece::Symbol('.'), Piece::Word(_) | Piece::Quoted(_), ..] = self.rest {
            self.rest = &self.rest[1..];
            return more(Expr::Field(Box::new(left), self.name()?));
        }
        if self.takes(&["collate"]) {
            self.names()?;
            return more(left);
        }
        if strength <= OR && self.takes(&["or"]) {
            let right = self.binding(OR + 1)?;
            return more(match left {
                Expr::Or(mut list) => {
                    list.push(right);
                    Expr::Or(list)
                }
                left => Expr::Or(vec![left, right]),
            });
        }
        if strength <= AND && self.takes(&["and"]) {
            let right = self.binding(AND + 1)?;
            return more(match left {
                Expr::And(mut list) => {
                    list.push(right);
                    Expr::And(list)
                }
                left => Expr::And(vec![left, right]),
            });
        }
        if strength <= IS {
            if let Some(expr) = self.is()? {
                return more(expr.of(left));
            }
        }
        if strength <= COMPARISON {
            let start = self.rest;
            let is_not = self.takes(&["not"]);
            if self.takes(&["in"]) {
                let expr = self.in_list(left)?;
                return more(negated(expr, is_not));
            }
            if self.takes(&["between"]) {
                let low = self.binding(COMPARISON + 1)?;
                self.word("and")?;
                let high = self.binding(COMPARISON + 1)?;
                return more(negated(call("between", vec![left, low, high]), is_not));
            }
            for (word, ignores_case) in [("like", false), ("ilike", true)] {
                if self.takes(&[word]) {
                    let like = Like {
                        is_not,
                        is_regular: false,
                        ignores_case,
                    };
                    return more(self.compared(left, Operator::Like(like))?);
                }
            }
            self.rest = start;
        }
        let Some((operator, binds, rest)) = symbols(self.rest) else {
            return done(left);
        };
        if strength > binds {
            return done(left);
        }
        self.rest = rest;
        if binds == COMPARISON {
            return more(self.compared(left, operator)?);
        }
        let right = self.binding(binds + 1)?;
        more(Expr::Binary(operator, Box::new((left, right))))
    }

    /// The rest of a comparison: an expression, or `ANY (…)`.
    fn compared(&mut self, left: Expr, operator: Operator) -> Parsed<Expr> {
        let is_any = self.takes(&["any"]) || self.takes(&["some"]);
        if !is_any && !self.takes(&["all"]) {
            let right = self.binding(COMPARISON + 1)?;
            if self.takes(&["escape"]) && !is_backslash(&self.primary()?) {
                return Err("ESCAPE with anything but a backslash".to_owned());
            }
            return Ok(Expr::Binary(operator, Box::new((left, right))));
        }
        self.symbol('(')?;
        let list = match self.begins_select() {
            true => Expr::ArrayOfSelect(Box::new(self.select()?)),
            false => self.expr()?,
        };
        self.symbol(')')?;
        let both = Box::new((left, list));
        Ok(match is_any {
            true => Expr::Any(operator, both),
            false => Expr::All(operator, both),
        })
    }

    fn in_list(&mut self, left: Expr) -> Parsed<Expr> {
        self.symbol('(')?;
        if self.begins_select() {
            let select = self.select()?;
            self.symbol(')')?;
            return Ok(Expr::InSelect(Box::new(left), Box::new(select)));
        }
        let list = self.listed(Self::expr)?;
        self.symbol(')')?;
        Ok(Expr::InList(Box::new(left), list))
    }

    fn is(&mut self) -> Parsed<Option<Is>> {
        if self.takes(&["isnull"]) {
            return Ok(Some(Is::Null { is_not: false }));
        }
        if self.takes(&["notnull"]) {
            return Ok(Some(Is::Null { is_not: true }));
        }
        if !self.takes(&["is"]) {
            return Ok(None);
        }
        let is_not = self.takes(&["not"]);
        Ok(Some(if self.takes(&["null"]) {
            Is::Null { is_not }
        } else if self.takes(&["true"]) {
            Is::Same {
                with: Expr::Bool(true),
                is_not,
            }
        } else if self.takes(&["false"]) {
            Is::Same {
                with: Expr::Bool(false),
                is_not,
            }
        } else if self.takes(&["distinct", "from"]) {
            let with = self.binding(COMPARISON + 1)?;
            Is::Same {
                with,
                is_not: !is_not,
            }
        } else {
            return Err(self.unexpected());
        }))
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let Some(piece) = self.rest.first() else {
            return Err(self.unexpected());
        };
        match piece {
            Piece::Number(number) => {
                self.rest = &self.rest[1..];
                match number.parse() {
                    Ok(number) => Ok(Expr::Int(number)),
                    Err(_) => match number.parse() {
                        Ok(number) => Ok(Expr::Float(number)),
                        Err(_) => Err(format!("{number:?} is no number")),
                    },
                }
            }
            Piece::Text(text) => {
                self.rest = &self.rest[1..];
                Ok(Expr::Text(text.clone()))
            }
            Piece::Symbol('(') => {
                self.rest = &self.rest[1..];
                let expr = match self.begins_select() {
                    true => Expr::Scalar(Box::new(self.select()?)),
                    false => {
                        let mut list = self.listed(Self::expr)?;
                        match list.len() {
                            1 => list.remove(0),
                            _ => Expr::Array(list),
                        }
                    }
                };
                self.symbol(')')?;
                Ok(expr)
            }
            Piece::Word(word) => self.word_primary(&word.clone()),
            Piece::Quoted(_) => self.named(),
            Piece::Symbol(_) => Err(self.unexpected()),
        }
    }

    fn word_primary(&mut self, word: &str) -> Parsed<Expr> {
        let behind = &self.rest[1..];
        let is_followed = |symbol| behind.first().is_some_and(|piece| piece.is_symbol(symbol));
        match word {
            "null" => self.constant(Expr::Null),
            "true" => self.constant(Expr::Bool(true)),
            "false" => self.constant(Expr::Bool(false)),
            "case" => {
                self.rest = behind;
                self.case()
            }
            "exists" if is_followed('(') => {
                self.rest = &behind[1..];
                let select = self.select()?;
                self.symbol(')')?;
                Ok(Expr::Exists(Box::new(select)))
            }
            "cast" if is_followed('(') => {
                self.rest = &behind[1..];
                let expr = self.expr()?;
                self.word("as")?;
                let name = self.type_name()?;
                self.symbol(')')?;
                Ok(Expr::Cast(Box::new(expr), name))
            }
            "array" if is_followed('[') => {
                self.rest = &behind[1..];
                let list = match self.is_symbol(']') {
                    true => Vec::new(),
                    false => self.listed(Self::expr)?,
                };
                self.symbol(']')?;
                Ok(Expr::Array(list))
            }
            "array" if is_followed('(') => {
                self.rest = &behind[1..];
                let select = self.select()?;
                self.symbol(')')?;
                Ok(Expr::ArrayOfSelect(Box::new(select)))
            }
            // `E'…'`, whose escapes do not matter here.
            "e" => match behind {
                [Piece::Text(text), rest @ ..] => {
                    self.rest = rest;
                    Ok(Expr::Text(text.replace("\\\\", "\\")))
                }
                _ => self.named(),
            },
            "current_user" | "session_user" | "user" | "current_role" | "current_catalog"
            | "current_schema" | "current_date" | "current_timestamp"
                if !is_followed('(') && !is_followed('.') =>
            {
                self.rest = behind;
                Ok(call(word, Vec::new()))
            }
            word if RESERVED.contains(&word) && !is_followed('(') => Err(self.unexpected()),
            _ => self.named(),
        }
    }

    fn constant(&mut self, expr: Expr) -> Parsed<Expr> {
        self.rest = &self.rest[1..];
        Ok(expr)
    }

    /// A column, or a call.
    fn named(&mut self) -> Parsed<Expr> {
        let parts = self.names()?;
        if self.is_symbol('(') {
            return self.call(&parts);
        }
        // `regclass 'person'`
        if let ([_], [Piece::Text(text), rest @ ..]) = (&parts[..], self.rest) {
            self.rest = rest;
            let text = Box::new(Expr::Text(text.clone()));
            return Ok(Expr::Cast(text, parts.concat()));
        }
        Ok(Expr::Column(parts))
    }

    pub(super) fn call(&mut self, parts: &[String]) -> Parsed<Expr> {
        let name = parts.last().cloned().unwrap_or_default();
        self.symbol('(')?;
        let mut made = Call {
            name,
            arguments: Vec::new(),
            is_distinct: self.takes(&["distinct"]),
            order: Vec::new(),
            filter: None,
            over: None,
        };
        let side = [
            ("both", "btrim"),
            ("leading", "ltrim"),
            ("trailing", "rtrim"),
        ];
        let side = side
            .iter()
            .find(|(word, _)| made.name == "trim" && self.takes(&[word]));
        if let Some((_, name)) = side {
            // `trim(both '"' from name)`
            made.name = (*name).to_owned();
            let first = self.expr()?;
            made.arguments = match self.takes(&["from"]) {
                true => vec![self.expr()?, first],
                false => vec![first],
            };
            self.symbol(')')?;
        } else if self.takes_symbol('*') {
            self.symbol(')')?;
        } else if !self.takes_symbol(')') {
            made.arguments.push(self.expr()?);
            // `substring(a from 1 for 2)` has words for commas.
            while self.takes_symbol(',') || self.takes(&["from"]) || self.takes(&["for"]) {
                made.arguments.push(self.expr()?);
            }
            made.order = self.order_by()?;
            self.symbol(')')?;
        }
        if self.takes(&["filter"]) {
            self.symbol('(')?;
            self.word("where")?;
            made.filter = Some(self.expr()?);
            self.symbol(')')?;
        }
        if self.takes(&["over"]) {
            self.symbol('(')?;
            let partition = match self.takes(&["partition", "by"]) {
                true => self.listed(Self::expr)?,
                false => Vec::new(),
            };
            let order = self.order_by()?;
            self.symbol(')')?;
            made.over = Some(Window { partition, order });
        }
        Ok(Expr::Call(Box::new(made)))
    }

    fn case(&mut self) -> Parsed<Expr> {
        let operand = match self.is_word("when") {
            true => None,
            false => Some(Box::new(self.expr()?)),
        };
        let mut branches = Vec::new();
        while self.takes(&["when"]) {
            let condition = self.expr()?;
            self.word("then")?;
            branches.push((condition, self.expr()?));
        }
        let otherwise = match self.takes(&["else"]) {
            true => Some(Box::new(self.expr()?)),
            false => None,
        };
        self.word("end")?;
        Ok(Expr::Case {
            operand,
            branches,
            otherwise,
        })
    }

    /// The last part of a type's name, with `[]` behind it if it is an array.
    pub(super) fn type_name(&mut self) -> Parsed<String> {
        let mut name = self.names()?.pop().unwrap_or_default();
        for (first, more) in [
            ("double", &["precision"][..]),
            ("character", &["varying"]),
            ("timestamp", &["without", "time", "zone"]),
            ("timestamp", &["with", "time", "zone"]),
        ] {
            if name == first && self.takes(more) {
                name = format!("{first} {}", more.join(" "));
            }
        }
        if self.is_symbol('(') {
            self.enclosed(Self::expr)?;
        }
        while self.takes_symbols(&['[', ']']) {
            if !name.ends_with("[]") {
                name.push_str("[]");
            }
        }
        Ok(name)
    }
}

fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    Expr::Call(Box::new(Call {
        name: name.to_owned(),
        arguments,
        is_distinct: false,
        order: Vec::new(),
        filter: None,
        over: None,
    }))
}

/// A test that stands behind what it tests.
enum Is {
    Null { is_not: bool },
    Same { with: Expr, is_not: bool },
}

impl Is {
    fn of(self, left: Expr) -> Expr {
        match self {
            Is::Null { is_not } => negated(Expr::IsNull(Box::new(left)), is_not),
            Is::Same { with, is_not } => negated(Expr::IsSame(Box::new((left, with))), is_not),
        }
    }
}

fn negated(expr: Expr, is_not: bool) -> Expr {
    match is_not {
        true => Expr::Not(Box::new(expr)),
        false => expr,
    }
}

/// How strongly operators bind.
const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const IS: u8 = 4;
const COMPARISON: u8 = 5;
const OTHER: u8 = 6;
const SUM: u8 = 7;
const PRODUCT: u8 = 8;
const UNARY: u8 = 9;

/// An operator that is written with signs, how strongly it binds, and what stands behind it.
fn symbols(pieces: &[Piece]) -> Option<(Operator, u8, &[Piece])> {
    use Operator as O;
    use Piece::Symbol as S;
    let like = |is_not, is_regular, ignores_case| {
        O::Like(Like {
            is_not,
            is_regular,
            ignores_case,
        })
    };
    // `OPERATOR(pg_catalog.~)`
    if let [Piece::Word(word), S('('), rest @ ..] = pieces {
        let rest = match rest {
            [Piece::Word(_), S('.'), rest @ ..] => rest,
            rest => rest,
        };
        if word != "operator" {
            return None;
        }
        let (operator, _, rest) = symbols(rest)?;
        return match rest {
            [S(')'), rest @ ..] => Some((operator, COMPARISON, rest)),
            _ => None,
        };
    }
    Some(match pieces {
        [S('!'), S('~'), S('~'), S('*'), rest @ ..] => (like(true, false, true), COMPARISON, rest),
        [S('!'), S('~'), S('~'), rest @ ..] => (like(true, false, false), COMPARISON, rest),
        [S('!'), S('~'), S('*'), rest @ ..] => (like(true, true, true), COMPARISON, rest),
        [S('!'), S('~'), rest @ ..] => (like(true, true, false), COMPARISON, rest),
        [S('~'), S('~'), S('*'), rest @ ..] => (like(false, false, true), COMPARISON, rest),
        [S('~'), S('~'), rest @ ..] => (like(false, false, false), COMPARISON, rest),
        [S('~'), S('*'), rest @ ..] => (like(false, true, true), COMPARISON, rest),
        [S('~'), rest @ ..] => (like(false, true, false), COMPARISON, rest),
        [S('<'), S('>'), rest @ ..] | [S('!'), S('='), rest @ ..] => (O::Unequal, COMPARISON, rest),
        [S('<'), S('='), rest @ ..] => (O::AtMost, COMPARISON, rest),
        [S('>'), S('='), rest @ ..] => (O::AtLeast, COMPARISON, rest),
        [S('<'), rest @ ..] => (O::Less, COMPARISON, rest),
        [S('>'), rest @ ..] => (O::Greater, COMPARISON, rest),
        [S('='), rest @ ..] => (O::Equal, COMPARISON, rest),
        [S('|'), S('|'), rest @ ..] => (O::Concatenate, OTHER, rest),
        [S('&'), rest @ ..] => (O::BitAnd, OTHER, rest),
        [S('+'), rest @ ..] => (O::Add, SUM, rest),
        [S('-'), rest @ ..] => (O::Subtract, SUM, rest),
        [S('*'), rest @ ..] => (O::Multiply, PRODUCT, rest),
        [S('/'), rest @ ..] => (O::Divide, PRODUCT, rest),
        [S('%'), rest @ ..] => (O::Remainder, PRODUCT, rest),
        _ => return None,
    })
}

/// What patterns have for an escape without `ESCAPE`.
fn is_backslash(expr: &Expr) -> bool {
    matches!(expr, Expr::Text(text) if text == "\\")
}
