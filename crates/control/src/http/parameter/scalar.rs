//! Numbers, flags and texts in a query.

use utoipa::openapi::schema::{KnownFormat, SchemaFormat, Type};
use utoipa::openapi::{Object, ObjectBuilder};

use super::Parameter;
use crate::http::error::ApiError;

/// A number from `MIN` to `MAX`.
#[derive(Debug)]
pub(crate) enum Number<const MIN: u64, const MAX: u64> {}

/// The same, which clients may keep in 32 bits.
#[derive(Debug)]
pub(crate) enum SmallNumber<const MIN: usize, const MAX: usize> {}

/// `true` or `false`, and `false` when absent.
#[derive(Debug)]
pub(crate) enum Flag {}

/// A flag that may also be `1` or `0`, as published clients send it.
#[derive(Debug)]
pub(crate) enum LooseFlag {}

/// A text of `MIN` to `MAX` bytes.
#[derive(Debug)]
pub(crate) enum Text<const MIN: usize, const MAX: usize> {}

/// A text of which the document says what it looks like.
pub(crate) fn text_like(pattern: &str) -> Object {
    let text = ObjectBuilder::new().schema_type(Type::String);
    text.pattern(Some(pattern)).build()
}

fn integer(format: KnownFormat, min: u64, max: Option<u64>) -> Object {
    let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(Some(SchemaFormat::KnownFormat(format)))
        .minimum(Some(number(min)))
        .maximum(max.map(number))
        .build()
}

fn number(name: &str, text: &str, min: u64, max: u64) -> Result<u64, ApiError> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_plain);
    let number = number.filter(|number| (min..=max).contains(number));
    number.ok_or_else(|| {
        let kind = match max {
            u64::MAX => format!("a number from {min} on"),
            _ => format!("a number from {min} to {max}"),
        };
        ApiError::invalid(format!("`{name}` must be {kind}"))
    })
}

impl<const MIN: u64, const MAX: u64> Parameter for Number<MIN, MAX> {
    type Value = u64;

    fn look() -> Object {
        integer(KnownFormat::Int64, MIN, (MAX < u64::MAX).then_some(MAX))
    }

    fn parse(name: &str, text: &str) -> Result<Self::Value, ApiError> {
        number(name, text, MIN, MAX)
    }
}

impl<const MIN: usize, const MAX: usize> Parameter for SmallNumber<MIN, MAX> {
    type Value = usize;

    fn look() -> Object {
        integer(KnownFormat::Int32, MIN as u64, Some(MAX as u64))
    }

    fn parse(name: &str, text: &str) -> Result<usize, ApiError> {
        let number = number(name, text, MIN as u64, MAX as u64)?;
        Ok(usize::try_from(number).unwrap_or(MAX))
    }
}

fn flag(name: &str, is_set: Option<bool>) -> Result<bool, ApiError> {
    is_set.ok_or_else(|| ApiError::invalid(format!("`{name}` must be true or false")))
}

impl Parameter for Flag {
    type Value = bool;

    const IS_REQUIRED: bool = false;

    fn look() -> Object {
        Object::with_type(Type::Boolean)
    }

    fn parse(name: &str, text: &str) -> Result<Self::Value, ApiError> {
        flag(name, text.parse().ok())
    }

    fn absent(_: &str) -> Result<Self::Value, ApiError> {
        Ok(false)
    }
}

impl Parameter for LooseFlag {
    type Value = bool;

    const IS_REQUIRED: bool = false;

    fn look() -> Object {
        text_like("^(true|false|1|0)$")
    }

    fn parse(name: &str, text: &str) -> Result<Self::Value, ApiError> {
        let is_set = match text {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        };
        flag(name, is_set)
    }

    fn absent(_: &str) -> Result<Self::Value, ApiError> {
        Ok(false)
    }
}

impl<const MIN: usize, const MAX: usize> Parameter for Text<MIN, MAX> {
    type Value = String;

    fn look() -> Object {
        let text = ObjectBuilder::new().schema_type(Type::String);
        let text = text.min_length((MIN > 0).then_some(MIN));
        text.max_length(Some(MAX)).build()
    }

    fn parse(name: &str, text: &str) -> Result<Self::Value, ApiError> {
        // Whoever sends an empty one did not mean all.
        if text.len() < MIN {
            return Err(ApiError::invalid(format!("`{name}` is empty")));
        }
        if text.len() > MAX {
            return Err(ApiError::invalid(format!("`{name}` is too long")));
        }
        Ok(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_plain_and_within_its_limits() {
        type Small = Number<1, 25>;
        assert_eq!(Small::parse("n", "25").unwrap(), 25);
        for wrong in ["", "0", "26", "+1", "1 ", "1.0", "18446744073709551616"] {
            assert!(Small::parse("n", wrong).is_err(), "{wrong}");
        }
        assert!(Number::<0, { u64::MAX }>::parse("n", "18446744073709551615").is_ok());
    }

    #[test]
    fn flags_take_what_they_are_documented_to_take() {
        assert!(Flag::parse("f", "1").is_err());
        assert!(Flag::parse("f", "true").unwrap());
        assert!(LooseFlag::parse("f", "1").unwrap());
        assert!(!LooseFlag::absent("f").unwrap());
        assert!(LooseFlag::parse("f", "yes").is_err());
    }
}
