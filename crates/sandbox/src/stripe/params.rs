//! Checks before the idempotency layer. A failure here stores nothing, so the key may be used again.

use super::currency;
use super::error::ApiError;
use super::form::{Params, inner};

/// One accepted parameter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Param {
    name: &'static str,
    shape: Shape,
    required: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// Minor units, at least 1 and at most 12 digits.
    Amount,
    Currency,
    /// At most so many characters, not empty.
    Text(usize),
    Flag,
    OneOf(&'static [&'static str]),
    /// ≤ 50 keys of ≤ 40 characters, values ≤ 500 (<https://docs.stripe.com/metadata>).
    Metadata,
    /// `name[0]`, `name[1]`, …
    List,
    /// `name[anything]`, kept out of the sandbox's state.
    Open,
    /// Seconds, bare or as `name[gt|gte|lt|lte]`.
    Range,
    /// Page size, 1 to 100.
    Limit,
}

pub(crate) const fn required(name: &'static str, shape: Shape) -> Param {
    Param { name, shape, required: true }
}

pub(crate) const fn optional(name: &'static str, shape: Shape) -> Param {
    Param { name, shape, required: false }
}

/// Refuses unknown, missing and malformed parameters.
pub(crate) fn check(params: &Params, specs: &[Param]) -> Result<(), ApiError> {
    if let Some(missing) = specs.iter().find(|spec| spec.required && params.get(spec.name).is_none()) {
        let message = format!("Missing required param: {}.", missing.name);
        return Err(ApiError::invalid(Some("parameter_missing"), missing.name, message));
    }
    for (name, value) in params.iter() {
        let spec = specs.iter().find(|spec| spec.accepts(name)).ok_or_else(|| {
            let message = format!("Received unknown parameter: {name}");
            ApiError::invalid(Some("parameter_unknown"), name, message)
        })?;
        spec.check_value(name, value)?;
    }
    let too_many = specs
        .iter()
        .find(|spec| matches!(spec.shape, Shape::Metadata) && params.nested(spec.name).len() > 50);
    match too_many {
        Some(spec) => Err(ApiError::invalid(None, spec.name, "Metadata can have up to 50 keys.")),
        None => Ok(()),
    }
}

impl Param {
    fn accepts(&self, name: &str) -> bool {
        match self.shape {
            Shape::Metadata | Shape::List => inner(name, self.name).is_some(),
            Shape::Open => {
                name == self.name || name.strip_prefix(self.name).is_some_and(|rest| rest.starts_with('['))
            }
            Shape::Range => {
                name == self.name || matches!(inner(name, self.name), Some("gt" | "gte" | "lt" | "lte"))
            }
            _ => name == self.name,
        }
    }

    fn check_value(&self, name: &str, value: &str) -> Result<(), ApiError> {
        let bad = |code: Option<&str>, message: String| Err(ApiError::invalid(code, name, message));
        match self.shape {
            Shape::Amount => match value.parse::<i64>() {
                Err(_) => bad(Some("parameter_invalid_integer"), format!("Invalid integer: {value}")),
                Ok(..1) => bad(
                    Some("parameter_invalid_integer"),
                    "This value must be greater than or equal to 1.".to_owned(),
                ),
                Ok(1_000_000_000_000..) => bad(
                    Some("amount_too_large"),
                    "Amount must be no more than 999999999999 minor units.".to_owned(),
                ),
                Ok(_) => Ok(()),
            },
            Shape::Currency if !currency::known(value) => {
                bad(None, format!("Invalid currency: {value}. See the list of supported currencies."))
            }
            Shape::Text(_) if value.is_empty() => {
                bad(Some("parameter_invalid_empty"), format!("You passed an empty string for '{name}'."))
            }
            Shape::Text(most) if value.chars().count() > most => {
                bad(None, format!("Invalid string: must be at most {most} characters"))
            }
            Shape::Flag if !matches!(value, "true" | "false") => {
                bad(None, format!("Invalid boolean: {value}"))
            }
            Shape::OneOf(choices) if !choices.contains(&value) => {
                bad(None, format!("Invalid {name}: must be one of {}", choices.join(", ")))
            }
            Shape::Metadata => {
                let key = inner(name, self.name).unwrap_or_default();
                if key.is_empty() || key.chars().count() > 40 {
                    return bad(None, "Metadata keys must be 1 to 40 characters long.".to_owned());
                }
                if value.chars().count() > 500 {
                    return bad(None, "Metadata values can have up to 500 characters.".to_owned());
                }
                Ok(())
            }
            Shape::Range if value.parse::<i64>().is_err() => {
                bad(Some("parameter_invalid_integer"), format!("Invalid integer: {value}"))
            }
            Shape::Limit if !value.parse().is_ok_and(|n: u32| (1..=100).contains(&n)) => {
                bad(Some("parameter_invalid_integer"), "Invalid limit: must be between 1 and 100".to_owned())
            }
            _ => Ok(()),
        }
    }
}
