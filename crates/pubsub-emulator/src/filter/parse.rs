//! Reader of the filter language.

use super::{Filter, FilterError};
use std::iter::Peekable;
use std::str::Chars;
use std::vec::IntoIter;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    Text(String),
    Sign(&'static str),
}

impl Token {
    fn refused(self) -> FilterError {
        FilterError::Unexpected(match self {
            Self::Word(text) | Self::Text(text) => text,
            Self::Sign(sign) => sign.to_owned(),
        })
    }
}

/// Parses a filter that is not empty.
pub(super) fn parse(text: &str) -> Result<Filter, FilterError> {
    let mut reader = Reader { tokens: tokens(text)?.into_iter().peekable() };
    let filter = reader.expression()?;
    reader.tokens.next().map_or(Ok(filter), |token| Err(token.refused()))
}

fn tokens(text: &str) -> Result<Vec<Token>, FilterError> {
    let mut chars = text.chars().peekable();
    let mut out = Vec::new();
    while let Some(c) = chars.next() {
        let sign = match c {
            c if c.is_whitespace() => continue,
            '"' => {
                out.push(Token::Text(quoted(&mut chars)?));
                continue;
            }
            '(' => "(",
            ')' => ")",
            ',' => ",",
            ':' => ":",
            '.' => ".",
            '=' => "=",
            // A dash inside a word belongs to the word; here it is a negation.
            '-' => "NOT",
            '!' => match chars.next() {
                Some('=') => "!=",
                Some(other) => return Err(FilterError::Unexpected(other.into())),
                None => return Err(FilterError::End),
            },
            c if word_char(c) => {
                let mut word = String::from(c);
                while let Some(c) = chars.next_if(|c| word_char(*c) || *c == '-') {
                    word.push(c);
                }
                match word.as_str() {
                    "AND" => "AND",
                    "OR" => "OR",
                    "NOT" => "NOT",
                    _ => {
                        out.push(Token::Word(word));
                        continue;
                    }
                }
            }
            other => return Err(FilterError::Unexpected(other.into())),
        };
        out.push(Token::Sign(sign));
    }
    Ok(out)
}

fn word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn quoted(chars: &mut Peekable<Chars<'_>>) -> Result<String, FilterError> {
    let mut out = String::new();
    loop {
        match chars.next().ok_or(FilterError::Unterminated)? {
            '"' => return Ok(out),
            '\\' => out.push(chars.next().ok_or(FilterError::Unterminated)?),
            c => out.push(c),
        }
    }
}

struct Reader {
    tokens: Peekable<IntoIter<Token>>,
}

impl Reader {
    fn eat(&mut self, sign: &'static str) -> bool {
        self.tokens.next_if(|token| *token == Token::Sign(sign)).is_some()
    }

    fn need(&mut self, sign: &'static str) -> Result<(), FilterError> {
        match self.tokens.next() {
            Some(Token::Sign(found)) if found == sign => Ok(()),
            Some(other) => Err(other.refused()),
            None => Err(FilterError::End),
        }
    }

    fn expression(&mut self) -> Result<Filter, FilterError> {
        let first = self.term()?;
        let Some(Token::Sign(sign @ ("AND" | "OR"))) = self.tokens.peek().cloned() else {
            return Ok(first);
        };
        let mut terms = vec![first];
        while self.eat(sign) {
            terms.push(self.term()?);
        }
        if let Some(Token::Sign("AND" | "OR")) = self.tokens.peek() {
            return Err(FilterError::Mixed);
        }
        Ok(if sign == "AND" { Filter::And(terms) } else { Filter::Or(terms) })
    }

    fn term(&mut self) -> Result<Filter, FilterError> {
        if self.eat("NOT") {
            return Ok(Filter::Not(Box::new(self.term()?)));
        }
        if self.eat("(") {
            let inner = self.expression()?;
            self.need(")")?;
            return Ok(inner);
        }
        match self.tokens.next().ok_or(FilterError::End)? {
            Token::Word(word) if word == "attributes" => self.comparison(),
            Token::Word(word) if word == "hasPrefix" => {
                self.need("(")?;
                self.attributes()?;
                self.need(".")?;
                let key = self.name()?;
                self.need(",")?;
                let prefix = self.text()?;
                self.need(")")?;
                Ok(Filter::HasPrefix(key, prefix))
            }
            other => Err(other.refused()),
        }
    }

    fn comparison(&mut self) -> Result<Filter, FilterError> {
        if self.eat(":") {
            return Ok(Filter::Has(self.name()?));
        }
        self.need(".")?;
        let key = self.name()?;
        if self.eat("=") {
            return Ok(Filter::Equals(key, self.text()?));
        }
        self.need("!=")?;
        Ok(Filter::Differs(key, self.text()?))
    }

    fn attributes(&mut self) -> Result<(), FilterError> {
        match self.tokens.next() {
            Some(Token::Word(word)) if word == "attributes" => Ok(()),
            Some(other) => Err(other.refused()),
            None => Err(FilterError::End),
        }
    }

    fn name(&mut self) -> Result<String, FilterError> {
        match self.tokens.next() {
            Some(Token::Word(name) | Token::Text(name)) => Ok(name),
            Some(other) => Err(other.refused()),
            None => Err(FilterError::End),
        }
    }

    fn text(&mut self) -> Result<String, FilterError> {
        match self.tokens.next() {
            Some(Token::Text(text)) => Ok(text),
            Some(other) => Err(other.refused()),
            None => Err(FilterError::End),
        }
    }
}
