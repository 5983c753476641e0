/// A module's description of itself. Hosts show it, and check aliases and configuration against it; it grants nothing.
///
/// [`manifest!`](crate::manifest!) fills in what `Cargo.toml` has, and [`creature!`](crate::creature!) puts it into the
/// module.
///
/// ```
/// use terrarium::{manifest, Alias, Manifest};
///
/// const MANIFEST: Manifest = Manifest {
///     listen: &[Alias::new("words", "what is counted")],
///     config: r#"{"type": "object", "properties": {"step": {"type": "integer"}}}"#,
///     ..manifest!()
/// };
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Manifest {
    /// The name of the creature.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// What it does.
    pub description: &'static str,
    /// Its licence, as an SPDX expression.
    pub licence: &'static str,
    /// The channels that it listens on.
    pub listen: &'static [Alias],
    /// The channels that it sends on.
    pub send: &'static [Alias],
    /// The grants that it needs.
    pub capabilities: &'static [&'static str],
    /// The JSON Schema of its configuration; empty for none.
    pub config: &'static str,
}

/// A channel that a creature uses, by its alias.
#[derive(Clone, Copy, Debug)]
pub struct Alias {
    alias: &'static str,
    description: &'static str,
    optional: bool,
}

impl Alias {
    /// Describes a channel.
    pub const fn new(alias: &'static str, description: &'static str) -> Alias {
        Alias { alias, description, optional: false }
    }

    /// Describes the same channel as one that need not exist.
    pub const fn optional(self) -> Alias {
        Alias { optional: true, ..self }
    }
}

impl Manifest {
    /// A manifest without any content.
    pub const EMPTY: Manifest = Manifest {
        name: "",
        version: "",
        description: "",
        licence: "",
        listen: &[],
        send: &[],
        capabilities: &[],
        config: "",
    };

    /// Returns the size of the JSON in bytes.
    pub const fn size(&self) -> usize {
        self.write::<0>().at
    }

    /// Returns the JSON, whose size is `N`.
    pub const fn json<const N: usize>(&self) -> [u8; N] {
        self.write().bytes
    }

    const fn write<const N: usize>(&self) -> Writer<N> {
        let mut w = Writer::new().raw("{\"name\":").text(self.name).raw(",\"abi\":[1]");
        w = w.member(",\"version\":", self.version);
        w = w.member(",\"description\":", self.description);
        w = w.member(",\"licence\":", self.licence);
        w = w.aliases(",\"listen\":[", self.listen);
        w = w.aliases(",\"send\":[", self.send);
        w = w.texts(",\"capabilities\":[", self.capabilities);
        if !self.config.is_empty() {
            w = w.raw(",\"config\":").raw(self.config);
        }
        w.raw("}")
    }
}

/// Writes JSON at compile time. Bytes beyond `N` are only counted.
struct Writer<const N: usize> {
    bytes: [u8; N],
    at: usize,
}

impl<const N: usize> Writer<N> {
    const fn new() -> Self {
        Writer { bytes: [0; N], at: 0 }
    }

    const fn byte(mut self, byte: u8) -> Self {
        if self.at < N {
            self.bytes[self.at] = byte;
        }
        self.at += 1;
        self
    }

    const fn raw(mut self, text: &str) -> Self {
        let mut i = 0;
        while i < text.len() {
            self = self.byte(text.as_bytes()[i]);
            i += 1;
        }
        self
    }

    const fn text(mut self, text: &str) -> Self {
        self = self.byte(b'"');
        let mut i = 0;
        while i < text.len() {
            let byte = text.as_bytes()[i];
            if byte < b' ' {
                self = self.raw("\\u00").byte(b'0' + (byte >> 4)).byte(b"0123456789abcdef"[byte as usize & 15]);
            } else {
                if byte == b'"' || byte == b'\\' {
                    self = self.byte(b'\\');
                }
                self = self.byte(byte);
            }
            i += 1;
        }
        self.byte(b'"')
    }

    const fn member(self, name: &str, text: &str) -> Self {
        if text.is_empty() {
            return self;
        }
        self.raw(name).text(text)
    }

    const fn aliases(mut self, name: &str, list: &[Alias]) -> Self {
        if list.is_empty() {
            return self;
        }
        self = self.raw(name);
        let mut i = 0;
        while i < list.len() {
            self = self.raw(if i == 0 { "{\"alias\":" } else { ",{\"alias\":" }).text(list[i].alias);
            self = self.member(",\"description\":", list[i].description);
            self = self.raw(if list[i].optional { ",\"optional\":true}" } else { "}" });
            i += 1;
        }
        self.byte(b']')
    }

    const fn texts(mut self, name: &str, list: &[&str]) -> Self {
        if list.is_empty() {
            return self;
        }
        self = self.raw(name);
        let mut i = 0;
        while i < list.len() {
            self = self.raw(if i == 0 { "" } else { "," }).text(list[i]);
            i += 1;
        }
        self.byte(b']')
    }
}
