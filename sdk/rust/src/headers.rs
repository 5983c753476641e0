use std::fmt;

/// The headers of a message: names and values, in their order.
///
/// ```
/// use terrarium::Headers;
///
/// let headers = Headers::from([("tone", "loud"), ("count", "3")]);
/// assert_eq!(headers.get("count"), Some(&b"3"[..]));
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(Vec<u8>); // name NUL value NUL, repeated

impl Headers {
    /// Makes an empty list.
    pub fn new() -> Headers {
        Headers::default()
    }

    /// Adds a header. If a name appears twice, its last value counts.
    ///
    /// A name is not empty, and neither contains NUL; else the host refuses the message.
    pub fn push(&mut self, name: impl AsRef<str>, value: impl AsRef<[u8]>) {
        let (name, value) = (name.as_ref().as_bytes(), value.as_ref());
        if name.contains(&0) || value.contains(&0) {
            // Written as it is, a NUL would begin another header. An empty name is refused.
            self.0.extend([0, 0]);
            return;
        }
        for part in [name, value] {
            self.0.extend(part);
            self.0.push(0);
        }
    }

    /// Returns the value of a header. It need not be UTF-8.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter().filter(|header| header.0 == name).last().map(|header| header.1)
    }

    /// Iterates over names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let mut parts = self.0.split(|byte| *byte == 0);
        std::iter::from_fn(move || {
            let (name, value) = (parts.next()?, parts.next()?);
            Some((std::str::from_utf8(name).unwrap_or(""), value))
        })
    }

    /// Returns the form of the contract.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Headers {
        Headers(bytes)
    }
}

impl<N: AsRef<str>, V: AsRef<[u8]>, const COUNT: usize> From<[(N, V); COUNT]> for Headers {
    fn from(list: [(N, V); COUNT]) -> Headers {
        let mut headers = Headers::new();
        for (name, value) in &list {
            headers.push(name, value);
        }
        headers
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = self.iter().map(|(name, value)| (name, String::from_utf8_lossy(value)));
        f.debug_map().entries(texts).finish()
    }
}
