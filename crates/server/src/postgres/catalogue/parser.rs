//! From words to a question. What is not understood is refused with the word at which it ends.

mod expressions;

use super::super::words::Piece;
use super::syntax::*;

/// Expressions and questions may be nested so deep, and as many operators may stand behind each other.
const DEPTH_MAX: usize = 48;
/// The tree of an expression is so high at most: what reads it afterwards calls itself for each floor, on a stack of 2 MiB.
const HEIGHT_MAX: usize = 96;

/// Words that are no alias.
const RESERVED: [&str; 52] = [
    "all",
    "and",
    "any",
    "as",
    "asc",
    "between",
    "case",
    "collate",
    "cross",
    "desc",
    "distinct",
    "else",
    "end",
    "except",
    "fetch",
    "filter",
    "for",
    "from",
    "full",
    "group",
    "having",
    "ilike",
    "in",
    "inner",
    "intersect",
    "is",
    "isnull",
    "join",
    "lateral",
    "left",
    "like",
    "limit",
    "natural",
    "not",
    "notnull",
    "nulls",
    "offset",
    "on",
    "operator",
    "or",
    "order",
    "over",
    "right",
    "select",
    "similar",
    "then",
    "union",
    "using",
    "when",
    "where",
    "window",
    "with",
];

/// Why a question is not understood.
pub(super) type Refusal = String;

pub(super) fn parse(pieces: &[Piece]) -> Result<Select, Refusal> {
    let mut parser = Parser {
        rest: pieces,
        depth: 0,
        height: 0,
    };
    let select = parser.select()?;
    match parser.rest {
        [] => Ok(select),
        _ => Err(parser.unexpected()),
    }
}

struct Parser<'p> {
    rest: &'p [Piece],
    depth: usize,
    /// Of the highest expression since the one around it began.
    height: usize,
}

type Parsed<T> = Result<T, Refusal>;

impl<'p> Parser<'p> {
    fn unexpected(&self) -> Refusal {
        match self.rest.first() {
            None => "it ends too early".to_owned(),
            Some(
                Piece::Word(word) | Piece::Quoted(word) | Piece::Text(word) | Piece::Number(word),
            ) => {
                format!("at or near {word:?}")
            }
            Some(Piece::Symbol(symbol)) => format!("at or near {symbol:?}"),
        }
    }

    fn is_word(&self, word: &str) -> bool {
        self.rest.first().is_some_and(|piece| piece.is_word(word))
    }

    fn is_symbol(&self, symbol: char) -> bool {
        self.rest
            .first()
            .is_some_and(|piece| piece.is_symbol(symbol))
    }

    /// Takes words if they all stand there.
    fn takes(&mut self, words: &[&str]) -> bool {
        let stand = words.len() <= self.rest.len()
            && words
                .iter()
                .zip(self.rest)
                .all(|(word, piece)| piece.is_word(word));
        if stand {
            self.rest = &self.rest[words.len()..];
        }
        stand
    }

    fn takes_symbol(&mut self, symbol: char) -> bool {
        self.takes_symbols(&[symbol])
    }

    fn takes_symbols(&mut self, symbols: &[char]) -> bool {
        let stand = symbols.len() <= self.rest.len()
            && symbols
                .iter()
                .zip(self.rest)
                .all(|(symbol, piece)| piece.is_symbol(*symbol));
        if stand {
            self.rest = &self.rest[symbols.len()..];
        }
        stand
    }

    fn word(&mut self, word: &str) -> Parsed<()> {
        match self.takes(&[word]) {
            true => Ok(()),
            false => Err(self.unexpected()),
        }
    }

    fn symbol(&mut self, symbol: char) -> Parsed<()> {
        match self.takes_symbol(symbol) {
            true => Ok(()),
            false => Err(self.unexpected()),
        }
    }

    fn name(&mut self) -> Parsed<String> {
        let name = self.rest.first().and_then(Piece::name).map(str::to_owned);
        let name = name.ok_or_else(|| self.unexpected())?;
        self.rest = &self.rest[1..];
        Ok(name)
    }

    fn alias(&mut self) -> Parsed<Option<String>> {
        if self.takes(&["as"]) {
            return self.name().map(Some);
        }
        match self.rest.first() {
            Some(Piece::Word(word)) if RESERVED.contains(&word.as_str()) => Ok(None),
            Some(Piece::Word(_) | Piece::Quoted(_)) => self.name().map(Some),
            _ => Ok(None),
        }
    }

    fn listed<T>(&mut self, mut one: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut list = vec![one(self)?];
        while self.takes_symbol(',') {
            list.push(one(self)?);
        }
        Ok(list)
    }

    /// `(one, …)`
    fn enclosed<T>(&mut self, one: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        self.symbol('(')?;
        let list = self.listed(one)?;
        self.symbol(')')?;
        Ok(list)
    }

    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEPTH_MAX {
            return Err(format!("it is nested more than {DEPTH_MAX} deep"));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn begins_select(&self) -> bool {
        let begin = ["select", "with", "values"];
        begin.iter().any(|word| self.is_word(word))
    }

    fn select(&mut self) -> Parsed<Select> {
        self.deeper(Self::select_here)
    }

    fn select_here(&mut self) -> Parsed<Select> {
        let mut with = Vec::new();
        if self.takes(&["with"]) {
            self.takes(&["recursive"]);
            with = self.listed(|parser| {
                let name = parser.name()?;
                let columns = match parser.is_symbol('(') {
                    true => parser.enclosed(Self::name)?,
                    false => Vec::new(),
                };
                parser.word("as")?;
                parser.takes(&["not"]);
                parser.takes(&["materialized"]);
                parser.symbol('(')?;
                let select = parser.select()?;
                parser.symbol(')')?;
                Ok((name, columns, select))
            })?;
        }
        let first = self.core()?;
        let mut others = Vec::new();
        loop {
            let operation = if self.takes(&["union", "all"]) {
                SetOperation::UnionAll
            } else if self.takes(&["union"]) {
                SetOperation::Union
            } else if self.takes(&["except"]) {
                SetOperation::Except
            } else if self.takes(&["intersect"]) {
                SetOperation::Intersect
            } else {
                break;
            };
            self.takes(&["distinct"]);
            // It would bind more strongly than the others.
            let is_other = |other: &(SetOperation, Core)| other.0 != SetOperation::Intersect;
            if operation == SetOperation::Intersect && others.iter().any(is_other) {
                return Err("INTERSECT behind UNION or EXCEPT: put it in parentheses".to_owned());
            }
            others.push((operation, self.core()?));
        }
        let order = self.order_by()?;
        let (mut limit, mut offset) = (None, None);
        loop {
            if self.takes(&["limit"]) {
                limit = match self.takes(&["all"]) {
                    true => None,
                    false => Some(self.expr()?),
                };
            } else if self.takes(&["offset"]) {
                offset = Some(self.expr()?);
                let _ = self.takes(&["rows"]) || self.takes(&["row"]);
            } else if self.takes(&["fetch"]) {
                let _ = self.takes(&["first"]) || self.takes(&["next"]);
                limit = Some(self.expr()?);
                let _ = self.takes(&["rows"]) || self.takes(&["row"]);
                self.word("only")?;
            } else {
                break;
            }
        }
        Ok(Select {
            with,
            first,
            others,
            order,
            limit,
            offset,
        })
    }

    fn order_by(&mut self) -> Parsed<Vec<Order>> {
        if !self.takes(&["order", "by"]) {
            return Ok(Vec::new());
        }
        self.listed(|parser| {
            let expr = parser.expr()?;
            let is_descending = !parser.takes(&["asc"]) && parser.takes(&["desc"]);
            let nulls_first = if parser.takes(&["nulls", "first"]) {
                Some(true)
            } else if parser.takes(&["nulls", "last"]) {
                Some(false)
            } else {
                None
            };
            Ok(Order {
                expr,
                is_descending,
                nulls_first,
            })
        })
    }

    fn core(&mut self) -> Parsed<Core> {
        if self.takes_symbol('(') {
            let select = self.select()?;
            self.symbol(')')?;
            return Ok(Core::Nested(Box::new(select)));
        }
        if self.takes(&["values"]) {
            let rows = self.listed(|parser| parser.enclosed(Self::expr))?;
            return Ok(Core::Values(rows));
        }
        self.word("select")?;
        let mut core = SelectCore::default();
        if self.takes(&["distinct", "on"]) {
            core.distinct = Distinct::On(self.enclosed(Self::expr)?);
        } else if self.takes(&["distinct"]) {
            core.distinct = Distinct::Rows;
        } else {
            self.takes(&["all"]);
        }
        core.items = self.listed(Self::item)?;
        if self.takes(&["from"]) {
            core.from = self.from()?;
        }
        if self.takes(&["where"]) {
            core.filter = Some(self.expr()?);
        }
        if self.takes(&["group", "by"]) {
            core.group = self.listed(Self::expr)?;
        }
        if self.takes(&["having"]) {
            core.having = Some(self.expr()?);
        }
        Ok(Core::Select(Box::new(core)))
    }

    fn item(&mut self) -> Parsed<Item> {
        if self.takes_symbol('*') {
            return Ok(Item::All(None));
        }
        if let [table, Piece::Symbol('.'), Piece::Symbol('*'), rest @ ..] = self.rest {
            if let Some(table) = table.name() {
                let table = table.to_owned();
                self.rest = rest;
                return Ok(Item::All(Some(table)));
            }
        }
        let expr = self.expr()?;
        Ok(Item::Expr(expr, self.alias()?))
    }

    fn from(&mut self) -> Parsed<Vec<From>> {
        let mut list = Vec::new();
        loop {
            list.push(self.joined_source(Join::Inner)?);
            while let Some((join, has_condition)) = self.join()? {
                let mut joined = self.joined_source(join)?;
                if has_condition {
                    joined.on = self.on()?;
                }
                list.push(joined);
            }
            if !self.takes_symbol(',') {
                return Ok(list);
            }
        }
    }

    fn join(&mut self) -> Parsed<Option<(Join, bool)>> {
        for (words, join, has_condition) in [
            (&["cross", "join"][..], Join::Inner, false),
            (&["inner", "join"], Join::Inner, true),
            (&["join"], Join::Inner, true),
            (&["left", "outer", "join"], Join::Left, true),
            (&["left", "join"], Join::Left, true),
            (&["right", "outer", "join"], Join::Right, true),
            (&["right", "join"], Join::Right, true),
            (&["full", "outer", "join"], Join::Full, true),
            (&["full", "join"], Join::Full, true),
        ] {
            if self.takes(words) {
                return Ok(Some((join, has_condition)));
            }
        }
        Ok(None)
    }

    fn on(&mut self) -> Parsed<On> {
        if self.takes(&["using"]) {
            return Ok(On::Using(self.enclosed(Self::name)?));
        }
        self.word("on")?;
        Ok(On::Expr(self.expr()?))
    }

    fn joined_source(&mut self, join: Join) -> Parsed<From> {
        let is_lateral = self.takes(&["lateral"]);
        let source = if self.takes_symbol('(') {
            let source = if self.begins_select() {
                let select = Box::new(self.select()?);
                Source::Select { select, is_lateral }
            } else {
                Source::Group(self.deeper(Self::from)?)
            };
            self.symbol(')')?;
            source
        } else {
            let parts = self.names()?;
            match self.is_symbol('(') {
                true => {
                    let call = self.call(&parts)?;
                    let is_numbered = self.takes(&["with", "ordinality"]);
                    Source::Function { call, is_numbered }
                }
                false => Source::Relation(parts),
            }
        };
        let alias = self.alias()?;
        let mut columns = Vec::new();
        if alias.is_some() && self.is_symbol('(') {
            columns = self.enclosed(|parser| {
                let name = parser.name()?;
                // The column of a function's result may have a type.
                if !parser.is_symbol(',') && !parser.is_symbol(')') {
                    parser.type_name()?;
                }
                Ok(name)
            })?;
        }
        Ok(From {
            join,
            source,
            alias,
            columns,
            on: On::Nothing,
        })
    }

    /// `a.b.c`
    fn names(&mut self) -> Parsed<Vec<String>> {
        let mut parts = vec![self.name()?];
        while let [Piece::Symbol('.'), Piece::Word(_) | Piece::Quoted(_), ..] = self.rest {
            self.rest = &self.rest[1..];
            parts.push(self.name()?);
            if parts.len() > 3 {
                return Err("a name has too many parts".to_owned());
            }
        }
        Ok(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::words::pieces;
    use super::*;
    use proptest::prelude::*;

    fn of(text: &str) -> Result<Select, Refusal> {
        parse(&pieces(text).expect("pieces"))
    }

    #[test]
    fn forms_that_programs_use() {
        for text in [
            "SELECT 1",
            "select a.\"B\"::text AS x, b y, * , c.* FROM pg_class c LEFT OUTER JOIN (SELECT 1 AS a) AS d(e) ON c.x = d.e AND NOT c.y, pg_type WHERE a IN (1, 2) OR b NOT IN (SELECT 1) ORDER BY 1 DESC NULLS LAST, 2 LIMIT 5 OFFSET 2",
            "SELECT CASE WHEN a THEN 1 ELSE 2 END, CASE b WHEN 'x' THEN 1 END FROM pg_class",
            "SELECT count(*), count(DISTINCT a), string_agg(a, ',' ORDER BY b) FILTER (WHERE c) FROM t GROUP BY 1 HAVING count(*) > 1",
            "SELECT row_number() OVER (PARTITION BY a ORDER BY b DESC), (f(x)).n, a[1], -1 + 2 * 3, NOT a IS NOT NULL",
            "SELECT 'a'::pg_catalog.regclass, E'\\\\x', CAST(a AS character varying(3)), a::\"char\", b::int2[]",
            "SELECT a OPERATOR(pg_catalog.~) '^(x)$' COLLATE pg_catalog.default, a !~~ 'b', a ~* 'c' FROM t",
            "SELECT a = ANY (ARRAY['a', 'b']), b <> ALL (SELECT 1), c BETWEEN 1 AND 2, d NOT LIKE 'x' ESCAPE '\\', e IS DISTINCT FROM f",
            "WITH x AS (SELECT 1), y(a) AS (VALUES (1, 2), (3, 4)) SELECT * FROM x UNION ALL (SELECT 2) EXCEPT SELECT 3",
            "SELECT * FROM a CROSS JOIN b JOIN (c JOIN d USING (e)) ON TRUE, LATERAL (SELECT a.x) l, unnest(a.y) WITH ORDINALITY AS u(v, w)",
            "SELECT EXISTS (SELECT 1 FROM t), ARRAY(SELECT 1), array[]::text[], substring(a FROM 1 FOR 2), (SELECT 1), (a, b) = (1, 2)",
            "SELECT DISTINCT ON (a) a FROM t FETCH FIRST 1 ROW ONLY",
        ] {
            if let Err(refusal) = of(text) {
                panic!("{text}: {refusal}");
            }
        }
        for text in [
            "SELECT",
            "SELECT 1 FROM",
            "SELECT 1 2",
            "SELECT (1",
            "SELECT a +",
            "SELECT f(,)",
            "SELECT 1;SELECT 2",
            "DELETE FROM t",
            "SELECT CASE END FROM",
            "SELECT 1 FROM t JOIN u",
        ] {
            assert!(of(text).is_err(), "{text}");
        }
    }

    /// Neither too many parentheses nor too many operators in one, but both.
    fn chains_in_chains() -> String {
        let chain = "+1".repeat(40);
        let closed = format!("){chain}").repeat(40);
        format!("SELECT {}1{chain}{closed}", "(".repeat(40))
    }

    #[test]
    fn nothing_is_too_deep() {
        for text in [
            format!("SELECT {}1", "(".repeat(20_000)),
            format!("SELECT {}1", "NOT ".repeat(10_000)),
            format!("SELECT {}1", "- ".repeat(20_000)),
            format!("SELECT 1{}", "::text".repeat(8_000)),
            format!("SELECT 1{}", "||1".repeat(10_000)),
            format!("SELECT {}", "case ".repeat(9_000)),
            format!("SELECT * FROM {}t", "(".repeat(20_000)),
            format!("SELECT * FROM {}", "(SELECT * FROM ".repeat(3_000)),
            format!("SELECT {}", "f(".repeat(20_000)),
            format!("SELECT 1{}", "[1]".repeat(10_000)),
            chains_in_chains(),
        ] {
            assert!(of(&text).is_err());
        }
        let long = format!("SELECT 1 WHERE a = 1{}", " OR a = 2 AND TRUE".repeat(2_000));
        assert!(of(&long).is_ok());
    }

    proptest! {
        #[test]
        fn any_words_are_a_question_or_not(words in prop::collection::vec("select|from|where|join|on|as|case|when|then|end|in|not|and|or|is|null|a|b|,|\\(|\\)|\\[|\\]|\\.|=|<|>|~|!|::|1|'x'|\\*|order by|limit|any|array|exists|union|with|over|distinct|between|like|operator", 0..20)) {
            let text = format!("select {}", words.join(" "));
            if let Some(pieces) = pieces(&text) {
                let _ = parse(&pieces);
            }
        }
    }
}
