use std::borrow::Cow;
use std::fmt;

use crate::raw::Code;

/// The result of a handler and of the calls of a [`Turn`](crate::Turn).
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a turn fails, or why the host refused a call.
///
/// `?` converts every error of the author, and texts: the turn then fails with [`Code::FAILED`] and that text.
///
/// ```
/// use terrarium::{Code, Error, Result};
///
/// fn parse(text: &str) -> Result<u8> {
///     if text.is_empty() {
///         return Err(Error::new(Code::INVALID_ARGUMENT, "there is no number"));
///     }
///     Ok(text.parse()?)
/// }
///
/// assert_eq!(parse("").unwrap_err().code(), Code::INVALID_ARGUMENT);
/// assert_eq!(parse("x").unwrap_err().to_string(), "invalid digit found in string");
/// assert_eq!(Error::from("no luck").code(), Code::FAILED);
/// ```
// It does not implement std::error::Error: the conversion from all errors would then include itself.
pub struct Error {
    code: Code,
    op: &'static str,
    text: Cow<'static, str>,
}

impl Error {
    /// Makes an error with a code of the contract.
    pub fn new(code: Code, text: impl Into<Cow<'static, str>>) -> Error {
        Error { code, op: "", text: text.into() }
    }

    /// Makes the error of a call that the host refused.
    pub(crate) fn refused(op: &'static str, code: Code, text: String) -> Error {
        Error { code, op, text: text.into() }
    }

    /// Returns the code.
    pub fn code(&self) -> Code {
        self.code
    }

    /// Returns what happened, without the call that the host refused.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// An error of the author, or a text, becomes an error with the code [`Code::FAILED`].
impl<E: Into<Box<dyn std::error::Error>>> From<E> for Error {
    fn from(e: E) -> Error {
        Error::new(Code::FAILED, e.into().to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.op, &*self.text) {
            ("", text) => f.write_str(text),
            (op, "") => write!(f, "{}: {}", op, self.code),
            (op, text) => write!(f, "{}: {} ({})", op, text, self.code),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self, self.code)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.0)
    }
}
