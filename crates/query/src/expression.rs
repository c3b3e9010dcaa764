//! Conditions: an operator-precedence parser without recursion (08 §5.1).

use crate::ast::{ColumnName, Expression, ExpressionId, Expressions, Value, ValueKind};
use crate::error::{Result, SqlError};
use crate::lexer::{unquote, Comparison, Kind};
use crate::parser::Parser;
use crate::words;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operator {
    OpenParen,
    Or,
    And,
    Not,
    Compare(Comparison),
}

impl Operator {
    /// Comparisons bind tightest, all six alike; then `NOT`, `AND`, `OR`.
    fn precedence(self) -> u8 {
        match self {
            Operator::OpenParen => 0,
            Operator::Or => 1,
            Operator::And => 2,
            Operator::Not => 3,
            Operator::Compare(_) => 4,
        }
    }
}

/// An operand and the token it starts with.
struct Operand {
    id: ExpressionId,
    start: usize,
}

#[derive(Default)]
struct Stacks {
    tree: Expressions,
    operators: Vec<Operator>,
    operands: Vec<Operand>,
    open_parens: usize,
}

impl Stacks {
    fn push_operand(&mut self, expression: Expression, start: usize) {
        let id = self.tree.push(expression);
        self.operands.push(Operand { id, start });
    }

    /// Applies the operators on top that bind at least as tightly as `precedence`.
    fn reduce(&mut self, precedence: u8) {
        while let Some(operator) = self.operators.pop_if(|o| o.precedence() >= precedence) {
            let Some(right) = self.operands.pop() else {
                return;
            };
            if operator == Operator::Not {
                self.push_operand(Expression::Not(right.id), right.start);
                continue;
            }
            let Some(left) = self.operands.pop() else {
                return;
            };
            let expression = match operator {
                Operator::And => Expression::And(left.id, right.id),
                Operator::Or => Expression::Or(left.id, right.id),
                Operator::Compare(comparison) => Expression::Compare(comparison, left.id, right.id),
                Operator::Not | Operator::OpenParen => return,
            };
            self.push_operand(expression, left.start);
        }
    }
}

impl Parser<'_> {
    /// A whole condition. Stops at the first token that cannot continue it.
    pub(crate) fn condition(&mut self) -> Result<Expressions> {
        let mut stacks = Stacks::default();
        loop {
            self.operand(&mut stacks)?;
            if !self.operator(&mut stacks)? {
                return Ok(stacks.tree);
            }
        }
    }

    /// Open parentheses and `NOT`s, then an operand.
    fn operand(&mut self, stacks: &mut Stacks) -> Result<()> {
        loop {
            let start = self.at;
            if self.kind() == Kind::OpenParen {
                self.advance();
                if self.is_one_of("SELECT WITH") {
                    return Err(self.unsupported_expression(start));
                }
                stacks.operators.push(Operator::OpenParen);
                stacks.open_parens += 1;
            } else if self.is_word("NOT") {
                self.advance();
                stacks.operators.push(Operator::Not);
            } else {
                let expression = self.primary()?;
                stacks.push_operand(expression, start);
                return Ok(());
            }
        }
    }

    /// Close parentheses, then an operator; false at the end of the condition.
    fn operator(&mut self, stacks: &mut Stacks) -> Result<bool> {
        loop {
            let operator = match self.kind() {
                Kind::CloseParen if stacks.open_parens > 0 => {
                    stacks.reduce(1);
                    stacks.operators.pop();
                    stacks.open_parens -= 1;
                    self.advance();
                    continue;
                }
                Kind::Comparison(comparison) => Operator::Compare(comparison),
                Kind::Word if self.is_word("AND") => Operator::And,
                Kind::Word if self.is_word("OR") => Operator::Or,
                Kind::Word if self.is_one_of(words::FOREIGN_INFIX) => {
                    self.suffix(stacks)?;
                    continue;
                }
                Kind::Plus | Kind::Minus | Kind::Star => {
                    return Err(SqlError::UnsupportedOperator(
                        self.slice(self.token()).to_owned(),
                    ));
                }
                Kind::Symbol => match self.slice(self.token()) {
                    "::" | "[" => return Err(self.foreign_infix(stacks)),
                    operator if crate::lexer::FOREIGN_OPERATORS.contains(&operator) => {
                        return Err(SqlError::UnsupportedOperator(operator.to_owned()));
                    }
                    _ => return self.end(stacks),
                },
                Kind::Comma if stacks.open_parens > 0 => return Err(self.foreign_infix(stacks)),
                _ => return self.end(stacks),
            };
            self.advance();
            stacks.reduce(operator.precedence());
            stacks.operators.push(operator);
            return Ok(true);
        }
    }

    fn end(&self, stacks: &mut Stacks) -> Result<bool> {
        if stacks.open_parens > 0 {
            return self.expected(")");
        }
        stacks.reduce(1);
        Ok(false)
    }

    /// `IN`, `BETWEEN`, `LIKE` and `IS NULL` behind a column, with or without `NOT`: of the ad hoc language only, but for `IN` with
    /// a subquery.
    fn suffix(&mut self, stacks: &mut Stacks) -> Result<()> {
        let refused = self.foreign_infix(stacks);
        let Some(operand) = stacks.operands.pop() else {
            return Err(refused);
        };
        let is_column = matches!(
            stacks.tree.0[operand.id as usize],
            Expression::Column(_) | Expression::Sender
        );
        let words = usize::from(self.is_word("NOT"));
        let is_in_subquery = self.is_word_after(words, "IN") && self.is_subquery_after(words + 1);
        let is_known = self.language.is_ad_hoc() || is_in_subquery;
        // Only of columns, as the operand is used several times.
        if !is_known || !is_column {
            return Err(refused);
        }
        let mut is_not = self.take_word("NOT");
        let tree = &mut stacks.tree;
        let id = if is_in_subquery {
            self.advance();
            let select = self.subquery()?;
            tree.push(Expression::InSelect(operand.id, select))
        } else if self.take_word("IN") {
            self.in_list(tree, operand.id, refused)?
        } else if self.take_word("BETWEEN") {
            let low = self.operand_of_suffix(tree)?;
            if !self.take_word("AND") {
                return self.expected("AND");
            }
            let high = self.operand_of_suffix(tree)?;
            let above = Expression::Compare(Comparison::GreaterOrEqual, operand.id, low);
            let below = Expression::Compare(Comparison::LessOrEqual, operand.id, high);
            let (above, below) = (tree.push(above), tree.push(below));
            tree.push(Expression::And(above, below))
        } else if self.take_word("LIKE") {
            if self.kind() != Kind::Text {
                return Err(refused);
            }
            let pattern = unquote(self.slice(self.token()), '\'');
            self.advance();
            tree.push(Expression::Like(operand.id, pattern))
        } else if !is_not && self.take_word("IS") {
            is_not = self.take_word("NOT");
            if !self.take_word("NULL") {
                return Err(refused);
            }
            tree.push(Expression::IsNull(operand.id))
        } else {
            return Err(refused);
        };
        let id = match is_not {
            true => tree.push(Expression::Not(id)),
            false => id,
        };
        stacks.operands.push(Operand {
            id,
            start: operand.start,
        });
        Ok(())
    }

    /// `(a, b, …)` as comparisons of which one must hold.
    fn in_list(
        &mut self,
        tree: &mut Expressions,
        operand: ExpressionId,
        refused: SqlError,
    ) -> Result<ExpressionId> {
        if !self.take(Kind::OpenParen) {
            return self.expected("(");
        }
        if self.is_one_of("SELECT WITH") {
            return Err(refused);
        }
        let mut any = None;
        loop {
            let item = self.operand_of_suffix(tree)?;
            let equal = tree.push(Expression::Compare(Comparison::Equal, operand, item));
            any = Some(match any {
                None => equal,
                Some(any) => tree.push(Expression::Or(any, equal)),
            });
            if !self.take(Kind::Comma) {
                break;
            }
        }
        match (self.take(Kind::CloseParen), any) {
            (true, Some(any)) => Ok(any),
            _ => self.expected(")"),
        }
    }

    fn operand_of_suffix(&mut self, tree: &mut Expressions) -> Result<ExpressionId> {
        let operand = self.primary()?;
        Ok(tree.push(operand))
    }

    fn foreign_infix(&self, stacks: &Stacks) -> SqlError {
        let start = stacks
            .operands
            .last()
            .map_or(self.at, |operand| operand.start);
        self.unsupported_expression(start)
    }

    fn primary(&mut self) -> Result<Expression> {
        let start = self.at;
        let token = self.token();
        if let Some(literal) = self.literal() {
            return Ok(Expression::Literal(literal));
        }
        match token.kind {
            Kind::Plus | Kind::Minus => {
                self.advance();
                match self.kind() {
                    Kind::End | Kind::Semicolon => self.expected("an expression:"),
                    _ => Err(self.unsupported_expression(start)),
                }
            }
            Kind::ForeignLiteral => {
                Err(SqlError::UnsupportedLiteral(self.render(start, start + 1)))
            }
            Kind::Colon => self.parameter(),
            Kind::Word | Kind::QuotedWord => self.word_expression(),
            _ => self.expected("an expression:"),
        }
    }

    /// A number with its sign, a string, hex digits or a Bool. None: nothing of these stands here.
    pub(crate) fn literal(&mut self) -> Option<Value> {
        let (sign, token) = match (self.kind(), self.kind_after(1)) {
            (Kind::Plus, Kind::Number) => ("+", self.tokens[self.at + 1]),
            (Kind::Minus, Kind::Number) => ("-", self.tokens[self.at + 1]),
            _ => ("", self.token()),
        };
        let slice = self.slice(token);
        let (kind, text) = match token.kind {
            Kind::Number => (
                ValueKind::Number,
                format!("{sign}{}", slice.trim_end_matches('L')),
            ),
            Kind::Text => (ValueKind::Text, unquote(slice, '\'')),
            Kind::HexNumber => (ValueKind::Hex, slice[2..].to_owned()),
            Kind::HexText => (ValueKind::Hex, unquote(slice, '\'')),
            Kind::Word if self.is_word("TRUE") => (ValueKind::Bool, "TRUE".to_owned()),
            Kind::Word if self.is_word("FALSE") => (ValueKind::Bool, "FALSE".to_owned()),
            _ => return None,
        };
        self.at += usize::from(!sign.is_empty());
        self.advance();
        Some(Value { kind, text })
    }

    /// `:sender`. Letter case counts, quotes do not.
    fn parameter(&mut self) -> Result<Expression> {
        let start = self.at;
        self.advance();
        match self.kind() {
            Kind::Number => {
                return Err(SqlError::UnsupportedLiteral(self.render(start, start + 2)))
            }
            Kind::Word | Kind::QuotedWord => {}
            _ => return self.expected("placeholder"),
        }
        let name = self.word()?;
        if name == "sender" {
            Ok(Expression::Sender)
        } else {
            Err(SqlError::UnsupportedLiteral(format!(":{name}")))
        }
    }

    /// What starts with a word: a Bool literal, a column, or something unsupported.
    fn word_expression(&mut self) -> Result<Expression> {
        let start = self.at;
        if self.is_word("NULL") {
            return Err(SqlError::UnsupportedLiteral("NULL".to_owned()));
        }
        if self.is_word("EXISTS") && self.is_subquery_after(1) {
            self.advance();
            return self.subquery().map(Expression::Exists);
        }
        if self.is_one_of(words::VALUE_FUNCTIONS) {
            self.advance();
            return match self.kind() {
                // The word stands for a value, so no column can follow.
                Kind::Period => self.expected("end of statement"),
                _ => Err(self.unsupported_expression(start)),
            };
        }
        if self.is_one_of(words::SPECIAL_EXPRESSIONS) {
            let needs_parenthesis = !self.is_word("CASE") && !self.is_word("INTERVAL");
            self.advance();
            return match self.kind() {
                Kind::OpenParen => Err(self.unsupported_expression(start)),
                _ if needs_parenthesis => self.expected("("),
                Kind::End | Kind::Semicolon | Kind::Comparison(_) | Kind::Period => {
                    self.expected("an expression:")
                }
                _ => Err(self.unsupported_expression(start)),
            };
        }
        if self.is_word("ARRAY")
            && (self.kind_after(1) == Kind::OpenParen
                || self.text[self.tokens[self.at].end..]
                    .trim_start()
                    .starts_with('['))
        {
            return Err(self.unsupported_expression(start));
        }
        if self.kind_after(1) == Kind::Text && self.is_one_of(words::STRING_TYPES) {
            return Err(self.unsupported_expression(start));
        }
        if self.aggregates.is_some() && self.kind_after(1) == Kind::OpenParen {
            let aggregate = self.aggregate_name()?;
            let name = aggregate.text();
            if let Some(aggregates) = &mut self.aggregates {
                aggregates.push(aggregate);
            }
            return Ok(Expression::Column(ColumnName {
                relation: None,
                name,
            }));
        }
        let column = self.column_name()?;
        if self.kind() == Kind::OpenParen {
            return Err(self.unsupported_expression(start));
        }
        Ok(Expression::Column(column))
    }
}
