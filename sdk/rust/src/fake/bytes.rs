use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use crate::Headers;

/// Bytes that compare with texts, and are shown as text.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl<T: AsRef<[u8]>> From<T> for Bytes {
    fn from(bytes: T) -> Bytes {
        Bytes(bytes.as_ref().to_vec())
    }
}

impl PartialEq<&str> for Bytes {
    fn eq(&self, text: &&str) -> bool {
        self.0 == text.as_bytes()
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        String::from_utf8_lossy(&self.0).fmt(f)
    }
}

/// A message that the creature sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The send alias; empty for a direct message.
    pub alias: String,
    /// The creature that gets a direct message; else empty.
    pub to: String,
    /// The bytes of the message.
    pub payload: Bytes,
    /// The headers of the message.
    pub headers: Headers,
}

impl Sent {
    /// Makes a message on a channel, to compare with.
    pub fn on(alias: &str, payload: impl AsRef<[u8]>) -> Sent {
        Sent { alias: alias.into(), to: String::new(), payload: payload.into(), headers: Headers::new() }
    }

    /// Makes a direct message, to compare with.
    pub fn to(creature: &str, payload: impl AsRef<[u8]>) -> Sent {
        Sent { alias: String::new(), to: creature.into(), payload: payload.into(), headers: Headers::new() }
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Sent {
        self.headers.push(name, value);
        self
    }
}

/// A request of the creature that waits for its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The creature that gets the request.
    pub to: String,
    /// The bytes of the request.
    pub payload: Bytes,
    /// How long the creature waits.
    pub deadline: Duration,
    /// The tag of the result.
    pub tag: i64,
}

/// A timer of the creature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timer {
    /// When it fires next, since 1970.
    pub due: Duration,
    /// How often it fires; zero for once.
    pub period: Duration,
    /// The payload of its deliveries.
    pub payload: Bytes,
}
