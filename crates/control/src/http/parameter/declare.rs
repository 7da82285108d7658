//! Parameters of requests, declared once: what the document says of one is what is read.

use http::request::Parts;
use utoipa::openapi::path::{Parameter as Described, ParameterBuilder, ParameterIn};
use utoipa::openapi::{Object, Required, Schema};

use super::{path_segment, query_value};
use crate::http::error::ApiError;

/// A kind of text that a parameter can be.
pub(crate) trait Parameter {
    /// What a handler gets of it.
    type Value;

    const IS_REQUIRED: bool = true;

    /// How the document describes it.
    fn look() -> Object;

    /// # Errors
    /// [`ApiError`] when the text is no such thing.
    fn parse(name: &str, text: &str) -> Result<Self::Value, ApiError>;

    /// What it is when the request does not have it.
    ///
    /// # Errors
    /// [`ApiError`] when the request must have it.
    fn absent(name: &str) -> Result<Self::Value, ApiError> {
        Err(ApiError::invalid(format!("the query lacks `{name}`")))
    }
}

impl<T: Parameter> Parameter for Option<T> {
    type Value = Option<T::Value>;

    const IS_REQUIRED: bool = false;

    fn look() -> Object {
        T::look()
    }

    fn parse(name: &str, text: &str) -> Result<Self::Value, ApiError> {
        T::parse(name, text).map(Some)
    }

    fn absent(_: &str) -> Result<Self::Value, ApiError> {
        Ok(None)
    }
}

/// Where requests have a parameter.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    Path,
    Query,
}

impl Place {
    /// Reads one of them from a request.
    pub(crate) async fn read<S: Send + Sync, T: Parameter>(
        self,
        parts: &mut Parts,
        state: &S,
        name: &str,
    ) -> Result<T::Value, ApiError> {
        let text = match self {
            Self::Path => Some(path_segment(parts, state, name).await.unwrap_or_default()),
            Self::Query => query_value(parts, name)?,
        };
        match text {
            Some(text) => T::parse(name, &text),
            None => T::absent(name),
        }
    }

    /// Describes one of them, with the lines of its comment.
    pub(crate) fn describe<T: Parameter>(self, name: &str, lines: &[&str]) -> Described {
        let lines: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
        let (place, required) = match self {
            Self::Path => (ParameterIn::Path, true),
            Self::Query => (ParameterIn::Query, T::IS_REQUIRED),
        };
        ParameterBuilder::new()
            .name(name)
            .parameter_in(place)
            .required(if required {
                Required::True
            } else {
                Required::False
            })
            .description(Some(lines.join("\n")))
            .schema(Some(Schema::Object(T::look())))
            .build()
    }
}

/// Declares what a request has in its path or its query: the type that a handler takes, how it is
/// read, and how the document describes it.
macro_rules! parameters {
    ($(
        $(#[doc = $about:literal])*
        $place:ident $name:ident {
            $($(#[doc = $line:literal])* $field:ident: $type:ty,)*
        }
    )*) => {$(
        $(#[doc = $about])*
        #[derive(Debug)]
        pub(crate) struct $name {
            $($(#[doc = $line])* pub(crate) $field: <$type as $crate::http::parameter::Parameter>::Value,)*
        }

        impl<S: Send + Sync> axum::extract::FromRequestParts<S> for $name {
            type Rejection = $crate::http::error::ApiError;

            async fn from_request_parts(
                parts: &mut http::request::Parts,
                state: &S,
            ) -> Result<Self, Self::Rejection> {
                let place = $crate::http::parameter::Place::$place;
                Ok(Self {
                    $($field: place.read::<S, $type>(parts, state, stringify!($field)).await?,)*
                })
            }
        }

        impl utoipa::IntoParams for $name {
            fn into_params(
                _: impl Fn() -> Option<utoipa::openapi::path::ParameterIn>,
            ) -> Vec<utoipa::openapi::path::Parameter> {
                let place = $crate::http::parameter::Place::$place;
                vec![$(place.describe::<$type>(stringify!($field), &[$($line),*]),)*]
            }
        }
    )*};
}
pub(crate) use parameters;
