use std::ops::RangeInclusive;

use crate::raw::{Code, Host, Source};
use crate::turn::utf8;
use crate::{Error, Json, Result, Turn};

/// The configuration. It does not change during the life of an instance; check it during init.
///
/// ```
/// use terrarium::{Result, Turn};
///
/// fn init(turn: &Turn) -> Result<()> {
///     turn.config_knows(&["prefix", "step"])?;
///     turn.config_text_or("prefix", "")?;
///     turn.config_whole_or("step", 1..=100, 1)?;
///     Ok(())
/// }
/// ```
impl Turn {
    /// Returns one attribute: a text as it is, anything else as JSON.
    pub fn config(&self, key: &str) -> Option<String> {
        let size = self.host().config(key.as_bytes(), &mut []);
        if size < 0 {
            return None;
        }
        Some(utf8(self.result(size)))
    }

    /// Returns the whole configuration, a JSON object.
    pub fn config_json(&self) -> String {
        self.source_text(Source::Config)
    }

    /// Returns a text, which is required.
    pub fn config_text(&self, key: &str) -> Result<String> {
        self.required(key, self.text_attribute(key)?)
    }

    /// Returns a text, or the default.
    pub fn config_text_or(&self, key: &str, default: &str) -> Result<String> {
        Ok(self.text_attribute(key)?.unwrap_or_else(|| default.into()))
    }

    /// Returns a whole number in a range, which is required.
    pub fn config_whole(&self, key: &str, range: RangeInclusive<i64>) -> Result<i64> {
        self.required(key, self.whole_attribute(key, range)?)
    }

    /// Returns a whole number in a range, or the default.
    pub fn config_whole_or(&self, key: &str, range: RangeInclusive<i64>, default: i64) -> Result<i64> {
        Ok(self.whole_attribute(key, range)?.unwrap_or(default))
    }

    /// Returns `true` or `false`, which is required.
    pub fn config_bool(&self, key: &str) -> Result<bool> {
        self.required(key, self.bool_attribute(key)?)
    }

    /// Returns `true` or `false`, or the default.
    pub fn config_bool_or(&self, key: &str, default: bool) -> Result<bool> {
        Ok(self.bool_attribute(key)?.unwrap_or(default))
    }

    /// Refuses all attributes but these.
    pub fn config_knows(&self, names: &[&str]) -> Result<()> {
        let config = self.config_json();
        for (key, _) in Json::parse(&config)?.members() {
            if !names.contains(&&*key) {
                let known = if names.is_empty() { "none".into() } else { names.join(", ") };
                return Err(invalid(&key, &format!("the creature has no such attribute; it has {}", known)));
            }
        }
        Ok(())
    }

    fn text_attribute(&self, key: &str) -> Result<Option<String>> {
        self.attribute(key, |value| value.text(), || "it must be a text".into())
    }

    fn whole_attribute(&self, key: &str, range: RangeInclusive<i64>) -> Result<Option<i64>> {
        self.attribute(
            key,
            |value| value.whole().filter(|n| range.contains(n)),
            || format!("it must be a whole number from {} to {}", range.start(), range.end()),
        )
    }

    fn bool_attribute(&self, key: &str) -> Result<Option<bool>> {
        self.attribute(key, |value| value.bool(), || "it must be true or false".into())
    }

    /// Reads an attribute from the JSON, because `config` returns the text "5" like the number 5.
    fn attribute<T>(
        &self,
        key: &str,
        read: impl FnOnce(Json<'_>) -> Option<T>,
        problem: impl FnOnce() -> String,
    ) -> Result<Option<T>> {
        let config = self.config_json();
        match Json::parse(&config)?.get(key) {
            None => Ok(None),
            Some(value) => read(value).map(Some).ok_or_else(|| invalid(key, &problem())),
        }
    }

    fn required<T>(&self, key: &str, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| Error::new(Code::NOT_FOUND, format!("config {}: it is required", key)))
    }
}

fn invalid(key: &str, problem: &str) -> Error {
    Error::new(Code::INVALID_ARGUMENT, format!("config {}: {}", key, problem))
}
