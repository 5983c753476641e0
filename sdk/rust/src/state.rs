use crate::json::whole;
use crate::raw::{Code, Host};
use crate::turn::utf8;
use crate::{Error, Result, Turn};

/// The state: keys and values that outlast turns and instances.
impl Turn {
    /// Returns a value of the state; `None` if there is no such key.
    pub fn state_get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        let size = self.host().state_get(key.as_bytes(), &mut []);
        if size == -Code::NOT_FOUND.0 {
            return Ok(None);
        }
        self.check("state_get", size).map(|size| Some(self.result(size)))
    }

    /// Writes a value of the state. A key is UTF-8, not empty and without NUL.
    pub fn state_set(&mut self, key: &str, value: impl AsRef<[u8]>) -> Result<()> {
        let status = self.host().state_set(key.as_bytes(), value.as_ref());
        self.check("state_set", status).map(drop)
    }

    /// Deletes a value of the state, and tells whether there was one.
    pub fn state_delete(&mut self, key: &str) -> Result<bool> {
        let status = self.host().state_delete(key.as_bytes());
        self.check("state_delete", status).map(|n| n > 0)
    }

    /// Returns the keys with a prefix, in the order of their bytes.
    pub fn state_list(&self, prefix: &str) -> Result<Vec<String>> {
        let size = self.host().state_list(prefix.as_bytes(), &mut []);
        let keys = utf8(self.check("state_list", size).map(|size| self.result(size))?);
        Ok(keys.split_terminator('\0').map(String::from).collect())
    }

    /// Returns a number that [`state_set_whole`](Turn::state_set_whole) wrote; 0 if there is no such key.
    pub fn state_whole(&self, key: &str) -> Result<i64> {
        match self.state_get(key)? {
            None => Ok(0),
            Some(digits) => std::str::from_utf8(&digits)
                .ok()
                .and_then(whole)
                .ok_or_else(|| Error::new(Code::INVALID_ARGUMENT, format!("state {}: it is not a whole number", key))),
        }
    }

    /// Writes a number to the state, in decimal.
    pub fn state_set_whole(&mut self, key: &str, value: i64) -> Result<()> {
        self.state_set(key, value.to_string())
    }
}
