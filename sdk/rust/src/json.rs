//! Reading and writing JSON.

use crate::raw::Code;
use crate::tools::Wire;
use crate::{Error, Result};

/// How deeply arrays and objects may be nested.
const DEPTH: usize = 128;

/// A value of a JSON document, as a part of its text.
///
/// ```
/// use terrarium::Json;
///
/// let pond = Json::parse(r#"{"name": "pond", "frogs": [{"age": 3}, {"age": 4}]}"#)?;
/// assert_eq!(pond.get("name").and_then(Json::text), Some("pond".into()));
/// let ages = pond.get("frogs").into_iter().flat_map(Json::items).filter_map(|frog| frog.get("age")?.whole());
/// assert_eq!(ages.sum::<i64>(), 7);
/// # Ok::<(), terrarium::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Json<'a>(&'a str);

impl<'a> Json<'a> {
    /// Reads a document, whose arrays and objects may be nested 128 deep.
    pub fn parse(text: &'a str) -> Result<Json<'a>> {
        let mut scan = Scan { text, at: 0 };
        match scan.value(0).filter(|_| scan.space() == text.len()) {
            Some(value) => Ok(value),
            None => Err(Error::new(Code::INVALID_ARGUMENT, format!("it is not JSON at byte {}", scan.at))),
        }
    }

    /// Returns the text of the value.
    pub fn raw(self) -> &'a str {
        self.0
    }

    /// Returns a member of an object. If a name appears twice, its last value counts.
    pub fn get(self, name: &str) -> Option<Json<'a>> {
        self.pairs().filter(|pair| same(pair.0, name)).last().map(|pair| pair.1)
    }

    /// Iterates over the members of an object; over nothing for any other value.
    pub fn members(self) -> impl Iterator<Item = (String, Json<'a>)> {
        self.pairs().map(|(name, value)| (unquote(name), value))
    }

    /// Iterates over the elements of an array; over nothing for any other value.
    pub fn items(self) -> impl Iterator<Item = Json<'a>> {
        let mut scan = Scan::open(self.0, b'[');
        std::iter::from_fn(move || {
            scan.take(b',');
            scan.value(0)
        })
    }

    /// Returns a text.
    pub fn text(self) -> Option<String> {
        self.0.starts_with('"').then(|| unquote(self.0))
    }

    /// Returns a whole number, written with digits only.
    pub fn whole(self) -> Option<i64> {
        whole(self.0)
    }

    /// Returns a number.
    pub fn number(self) -> Option<f64> {
        self.0.parse().ok().filter(|_| !self.is_null())
    }

    /// Returns `true` or `false`.
    pub fn bool(self) -> Option<bool> {
        self.0.parse().ok()
    }

    /// Tells whether the value is `null`.
    pub fn is_null(self) -> bool {
        self.0 == "null"
    }

    fn pairs(self) -> impl Iterator<Item = (&'a str, Json<'a>)> {
        let mut scan = Scan::open(self.0, b'{');
        std::iter::from_fn(move || {
            scan.take(b',');
            let name = scan.text()?;
            scan.take(b':');
            Some((name, scan.value(0)?))
        })
    }
}

/// Reads a decimal number: digits, perhaps behind a minus.
pub(crate) fn whole(text: &str) -> Option<i64> {
    text.parse().ok().filter(|_| !text.starts_with('+'))
}

/// Tells whether a text in quotes is `name`.
fn same(quoted: &str, name: &str) -> bool {
    &quoted[1..quoted.len() - 1] == name || quoted.contains('\\') && unquote(quoted) == name
}

/// A place in a document.
struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    /// Enters an array or object that is known to be well-formed; any other value has no elements.
    fn open(text: &'a str, bracket: u8) -> Scan<'a> {
        let mut scan = Scan { text, at: 0 };
        if !scan.take(bracket) {
            scan.at = text.len();
        }
        scan
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Skips white space and returns the place behind it.
    fn space(&mut self) -> usize {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        self.at
    }

    /// Skips white space, and then `byte` if it is next.
    fn take(&mut self, byte: u8) -> bool {
        self.space();
        let found = self.peek() == Some(byte);
        self.at += found as usize;
        found
    }

    fn value(&mut self, depth: usize) -> Option<Json<'a>> {
        let from = self.space();
        match self.peek()? {
            b'"' => drop(self.text()?),
            b'{' | b'[' if depth == DEPTH => return None,
            b'{' => self.list(b'}', |scan| {
                scan.text()?;
                scan.take(b':').then_some(())?;
                scan.value(depth + 1)
            })?,
            b'[' => self.list(b']', |scan| scan.value(depth + 1))?,
            b'-' | b'0'..=b'9' => self.number()?,
            _ => self.word()?,
        }
        Some(Json(&self.text[from..self.at]))
    }

    fn list(&mut self, end: u8, element: impl Fn(&mut Self) -> Option<Json<'a>>) -> Option<()> {
        self.at += 1;
        if self.take(end) {
            return Some(());
        }
        loop {
            element(self)?;
            if self.take(end) {
                return Some(());
            }
            self.take(b',').then_some(())?;
        }
    }

    /// Reads a text with its quotes.
    fn text(&mut self) -> Option<&'a str> {
        self.take(b'"').then_some(())?;
        let from = self.at - 1;
        loop {
            let byte = self.peek()?;
            self.at += 1;
            match byte {
                b'"' => return Some(&self.text[from..self.at]),
                b'\\' => self.escape()?,
                0..=31 => return None,
                _ => {}
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        let byte = self.peek()?;
        self.at += 1;
        match byte {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(()),
            b'u' => {
                hex(self.text.as_bytes().get(self.at..self.at + 4)?)?;
                self.at += 4;
                Some(())
            }
            _ => None,
        }
    }

    fn number(&mut self) -> Option<()> {
        self.at += (self.peek() == Some(b'-')) as usize;
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += matches!(self.peek(), Some(b'+' | b'-')) as usize;
            self.digits()?;
        }
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        let from = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        (self.at > from).then_some(())
    }

    fn word(&mut self) -> Option<()> {
        let rest = &self.text.as_bytes()[self.at..];
        let word = ["true", "false", "null"].iter().find(|word| rest.starts_with(word.as_bytes()))?;
        self.at += word.len();
        Some(())
    }
}

fn hex(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |n, digit| Some(n * 16 + (*digit as char).to_digit(16)?))
}

/// Decodes a well-formed text in quotes. A lone surrogate becomes the replacement character.
fn unquote(quoted: &str) -> String {
    let mut rest = &quoted[1..quoted.len() - 1];
    let mut text = String::with_capacity(rest.len());
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        let (c, length) = unescape(&rest.as_bytes()[at + 1..]);
        text.push(c);
        rest = &rest[at + 1 + length..];
    }
    text.push_str(rest);
    text
}

/// Decodes what follows a backslash, and returns its length.
fn unescape(rest: &[u8]) -> (char, usize) {
    let unit = |at: usize| rest.get(at..at + 4).and_then(hex);
    match rest[0] {
        b'b' => ('\u{8}', 1),
        b'f' => ('\u{c}', 1),
        b'n' => ('\n', 1),
        b'r' => ('\r', 1),
        b't' => ('\t', 1),
        b'u' => {
            let high = unit(1).unwrap_or(0);
            let low = unit(7).filter(|low| rest[5..].starts_with(b"\\u") && low & 0xfc00 == 0xdc00);
            match low {
                Some(low) if high & 0xfc00 == 0xd800 => {
                    let c = 0x10000 + ((high & 0x3ff) << 10 | low & 0x3ff);
                    (char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER), 11)
                }
                _ => (char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER), 5),
            }
        }
        byte => (byte as char, 1),
    }
}

/// Writes a text as JSON, in quotes.
///
/// ```
/// assert_eq!(terrarium::json::quote("two\n\"lines\""), r#""two\n\"lines\"""#);
/// ```
pub fn quote(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for c in text.chars() {
        match c {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            '\u{0}'..='\u{1f}' => {
                json.push_str("\\u00");
                json.extend([c as u32 >> 4, c as u32 & 15].iter().filter_map(|n| char::from_digit(*n, 16)));
            }
            c => json.push(c),
        }
    }
    json.push('"');
    json
}

/// Writes a JSON object, member by member.
///
/// ```
/// let mut frog = terrarium::json::Object::new();
/// frog.text("name", "fred");
/// frog.whole("age", 3);
/// assert_eq!(frog.end(), r#"{"name":"fred","age":3}"#);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Object(String);

impl Object {
    /// Starts an object.
    pub fn new() -> Object {
        Object::default()
    }

    /// Adds a text.
    pub fn text(&mut self, name: &str, value: &str) {
        self.json(name, &quote(value));
    }

    /// Adds a whole number.
    pub fn whole(&mut self, name: &str, value: i64) {
        self.json(name, &value.to_string());
    }

    /// Adds `true` or `false`.
    pub fn bool(&mut self, name: &str, value: bool) {
        self.json(name, if value { "true" } else { "false" });
    }

    /// Adds a value that is JSON already.
    pub fn json(&mut self, name: &str, value: &str) {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        self.0.push_str(&quote(name));
        self.0.push(':');
        self.0.push_str(value);
    }

    /// Adds a payload for a group tool: a text if it is UTF-8, else its Base64.
    pub fn payload(&mut self, name: &str, value: &[u8]) {
        match std::str::from_utf8(value) {
            Ok(text) => self.text(name, text),
            Err(_) => {
                let mut encoded = Object::new();
                encoded.text("base64", &base64(value));
                self.json(name, &encoded.end());
            }
        }
    }

    /// Adds a list of channels for a group tool.
    pub(crate) fn wires(&mut self, name: &str, wires: &[Wire<'_>]) {
        let list: Vec<String> = wires.iter().map(wire).collect();
        self.json(name, &format!("[{}]", list.join(",")));
    }

    /// Returns the object as text.
    pub fn end(self) -> String {
        if self.0.is_empty() {
            return "{}".into();
        }
        self.0 + "}"
    }
}

fn wire(wire: &Wire<'_>) -> String {
    let mut object = Object::new();
    object.text("channel", wire.channel);
    if let Some(alias) = wire.alias {
        object.text("alias", alias);
    }
    object.end()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len() / 3 * 4 + 4);
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, i| bits << 8 | u32::from(*group.get(i).unwrap_or(&0)));
        for i in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * i)) as usize & 63];
            text.push(if i <= group.len() { digit as char } else { '=' });
        }
    }
    text
}
