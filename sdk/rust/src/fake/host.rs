use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Bytes, Fake, Request, Sent, Timer};
use crate::json::Object;
use crate::raw::{limits, Code, Feature, Host, Kind, Level, Source, ALL_CHANNELS};
use crate::{Headers, Json};

/// What a turn reads and has collected.
#[derive(Default)]
pub(super) struct Collected {
    sources: BTreeMap<i32, Bytes>,
    handles: Vec<String>,
    state: BTreeMap<String, Bytes>,
    timers: BTreeMap<String, Timer>,
    sent: Vec<Sent>,
    requests: Vec<Request>,
    outputs: Vec<Bytes>,
    pub(super) reply: Option<Bytes>,
    counts: Counts,
    kind: Option<Kind>, // None where effects are not allowed
    drawn: u64,         // random numbers, over all turns
}

/// What a turn has used of its limits.
#[derive(Default)]
struct Counts {
    sent_bytes: usize,
    output_bytes: usize,
    sends: usize,
    written: BTreeSet<String>, // keys
    log_lines: u64,
    log_bytes: usize,
    tools: u64,
}

/// The status of a call: 0 or more, or the code and the text of an error.
type Status = Result<i32, (Code, String)>;

fn refuse<T>(code: Code, text: impl Into<String>) -> Result<T, (Code, String)> {
    Err((code, text.into()))
}

fn over<T>(limit: &str, most: u64) -> Result<T, (Code, String)> {
    refuse(Code::LIMIT, format!("the limit {} ({}) is reached", limit, most))
}

/// Refuses one thing that is larger than its limit.
fn fits(what: &str, size: usize, limit: &str, most: u64) -> Result<(), (Code, String)> {
    if size as u64 > most {
        return refuse(Code::TOO_LARGE, format!("{} has {} bytes; the limit {} is {}", what, size, limit, most));
    }
    Ok(())
}

/// Ends a log line that was cut.
const ELLIPSIS: &str = "\u{2026}";

/// Cuts a log line to at most `size` bytes, with the ellipsis.
fn shortened(line: &str, size: usize) -> String {
    let mut end = size.min(line.len()).saturating_sub(ELLIPSIS.len());
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    line[..end].to_owned() + ELLIPSIS
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Checks a key of the state or the name of a timer.
fn name(what: &str, bytes: &[u8]) -> Result<String, (Code, String)> {
    fits(what, bytes.len(), "state_key", limits::STATE_KEY)?;
    match std::str::from_utf8(bytes) {
        Ok(name) if !name.is_empty() && !name.contains('\0') => Ok(name.into()),
        _ => refuse(Code::INVALID_ARGUMENT, format!("{} is UTF-8 without NUL and not empty", what)),
    }
}

impl Fake {
    /// Prepares a turn, and returns the size of its payload.
    pub(super) fn begin(&mut self, kind: Kind, sources: &[(Source, &[u8])], read_only: bool) -> i32 {
        let drawn = self.turn.drawn;
        self.turn = Collected {
            state: self.state.clone(),
            timers: self.timers.clone(),
            requests: self.requests.clone(),
            kind: Some(kind).filter(|_| !read_only),
            drawn,
            ..Collected::default()
        };
        let revision = if self.revision > 0 { self.revision.to_string() } else { String::new() };
        let own = [
            (Source::SelfName, &self.name),
            (Source::Config, &self.config),
            (Source::AwarenessJson, &self.awareness),
            (Source::AwarenessMarkdown, &self.awareness_markdown),
            (Source::AwarenessRevision, &revision),
        ];
        self.turn.sources.extend(own.iter().map(|(source, content)| (*source as i32, Bytes::from(content))));
        self.turn.sources.extend(sources.iter().map(|(source, content)| (*source as i32, Bytes::from(content))));
        let detail = self.detail(kind);
        self.turn.sources.insert(Source::Detail as i32, detail.into());
        self.turn.sources.get(&(Source::Payload as i32)).map_or(0, |payload| payload.len() as i32)
    }

    /// Returns the detail of the delivery with the members that every kind has.
    fn detail(&self, kind: Kind) -> String {
        let given = self.turn.sources.get(&(Source::Detail as i32)).map_or(String::new(), |detail| text(detail));
        let given = Json::parse(&given).ok();
        let mut detail = Object::new();
        detail.text("kind", kind.name());
        detail.json("time", &self.time.as_nanos().to_string());
        if given.and_then(|given| given.get("attempt")).is_none() {
            detail.whole("attempt", 1);
        }
        for (name, value) in given.iter().flat_map(|given| given.members()) {
            detail.json(&name, value.raw());
        }
        detail.end()
    }

    /// Applies what a turn has collected.
    pub(super) fn commit(&mut self) {
        let turn = &mut self.turn;
        self.state = std::mem::take(&mut turn.state);
        self.timers = std::mem::take(&mut turn.timers);
        self.requests = std::mem::take(&mut turn.requests);
        self.sent.append(&mut turn.sent);
        self.outputs.append(&mut turn.outputs);
    }

    /// Returns the status of a call to the creature, and keeps the text of an error.
    fn status(&mut self, status: Status) -> i32 {
        status.unwrap_or_else(|(code, text)| {
            self.turn.sources.insert(Source::Error as i32, text.into());
            -code.0
        })
    }

    /// Keeps a value as the result of a call, and returns its size.
    fn found(&mut self, value: Bytes, bytes: &mut [u8]) -> Status {
        let n = bytes.len().min(value.len());
        bytes[..n].copy_from_slice(&value[..n]);
        let size = value.len() as i32;
        self.turn.sources.insert(Source::Result as i32, value);
        Ok(size)
    }

    fn effect(&self) -> Result<(), (Code, String)> {
        match self.turn.kind {
            Some(_) => Ok(()),
            None => refuse(Code::DENIED, "effects are only collected while a delivery is handled"),
        }
    }

    /// Checks the headers of a message, and leaves out the host's own.
    fn headers(&self, bytes: &[u8]) -> Result<Headers, (Code, String)> {
        let sound =
            bytes.is_empty() || bytes.ends_with(&[0]) && bytes.iter().filter(|byte| **byte == 0).count() % 2 == 0;
        let given = Headers::from_bytes(bytes.into());
        if !sound || given.iter().any(|header| header.0.is_empty()) {
            return refuse(Code::INVALID_ARGUMENT, "the headers are malformed");
        }
        let source = self.turn.sources.get(&(Source::Headers as i32));
        let delivered = Headers::from_bytes(source.map_or(Vec::new(), |headers| headers.0.clone()));
        let mut headers = Headers::new();
        for (name, value) in given.iter() {
            if !name.to_ascii_lowercase().starts_with("terrarium-") {
                headers.push(name, value);
            } else if delivered.get(name) != Some(value) {
                return refuse(
                    Code::INVALID_ARGUMENT,
                    "names of headers that begin with terrarium- are reserved for the host",
                );
            }
        }
        Ok(headers)
    }

    fn send_on(&mut self, channel: i32, payload: &[u8], headers: &[u8]) -> Status {
        self.effect()?;
        let aliases = match self.turn.handles.get(channel as usize) {
            _ if channel == ALL_CHANNELS => self.channels.clone(),
            Some(alias) if self.channels.contains(alias) => vec![alias.clone()],
            Some(alias) => return refuse(Code::NOT_CONNECTED, format!("the creature has no send alias {:?}", alias)),
            None => return refuse(Code::INVALID_ARGUMENT, format!("{} is not a channel handle", channel)),
        };
        fits("the message", payload.len() + headers.len(), "message", limits::MESSAGE)?;
        let headers = self.headers(headers)?;
        self.room(aliases.len(), payload.len() + headers.as_bytes().len())?;
        for alias in &aliases {
            self.turn.sent.push(Sent { headers: headers.clone(), ..Sent::on(alias, payload) });
        }
        Ok(aliases.len() as i32)
    }

    /// Counts messages of one size.
    fn room(&mut self, messages: usize, size: usize) -> Result<(), (Code, String)> {
        fits("the message", size, "message", limits::MESSAGE)?;
        if (self.turn.counts.sends + messages) as u64 > limits::SENDS {
            return over("sends", limits::SENDS);
        }
        if (self.turn.counts.sent_bytes + messages * size) as u64 > limits::SEND_BYTES {
            return over("send_bytes", limits::SEND_BYTES);
        }
        self.turn.counts.sends += messages;
        self.turn.counts.sent_bytes += messages * size;
        Ok(())
    }

    /// Refuses a creature that the graph does not have.
    fn reachable(&self, to: &[u8]) -> Result<(), (Code, String)> {
        if self.creatures.is_empty() || self.creatures.iter().any(|name| name.as_bytes() == to) {
            return Ok(());
        }
        refuse(Code::NOT_FOUND, format!("there is no creature {:?} in this graph", text(to)))
    }

    fn ask(&mut self, to: &[u8], payload: &[u8], deadline_ms: i64, tag: i64) -> Status {
        self.effect()?;
        if deadline_ms <= 0 {
            return refuse(Code::INVALID_ARGUMENT, "a request needs a deadline");
        }
        self.reachable(to)?;
        if self.turn.requests.len() as u64 >= limits::REQUESTS {
            return over("requests", limits::REQUESTS);
        }
        self.room(1, payload.len())?;
        let deadline = Duration::from_millis(deadline_ms as u64);
        self.turn.requests.push(Request { to: text(to), payload: payload.into(), deadline, tag });
        Ok(0)
    }

    fn answer_request(&mut self, payload: &[u8]) -> Status {
        if self.turn.kind != Some(Kind::Request) {
            return refuse(Code::DENIED, "there is no request to reply to");
        }
        if self.turn.reply.is_some() {
            return refuse(Code::ALREADY_EXISTS, "the request has a reply already");
        }
        fits("the reply", payload.len(), "message", limits::MESSAGE)?;
        self.turn.reply = Some(payload.into());
        Ok(0)
    }

    fn write_output(&mut self, payload: &[u8]) -> Status {
        self.effect()?;
        if (self.turn.counts.output_bytes + payload.len()) as u64 > limits::OUTPUT {
            return over("output", limits::OUTPUT);
        }
        self.turn.counts.output_bytes += payload.len();
        match self.turn.outputs.last_mut() {
            Some(output) => output.0.extend(payload),
            None => self.turn.outputs.push(payload.into()),
        }
        Ok(0)
    }

    fn write_state(&mut self, key: &[u8], value: Option<&[u8]>) -> Status {
        self.effect()?;
        let key = name("a key", key)?;
        fits("the value", value.map_or(0, <[u8]>::len), "state_value", limits::STATE_VALUE)?;
        if value.is_none() && !self.turn.state.contains_key(&key) {
            return Ok(0);
        }
        let others = self.turn.state.iter().filter(|pair| *pair.0 != key);
        let used: usize = others.map(|(key, value)| key.len() + value.len() + 32).sum();
        if value.map_or(0, |value| used + key.len() + value.len() + 32) as u64 > limits::STATE {
            return over("state", limits::STATE);
        }
        let written = &mut self.turn.counts.written;
        if !written.contains(&key) && written.len() as u64 >= limits::STATE_WRITES {
            return over("state_writes", limits::STATE_WRITES);
        }
        written.insert(key.clone());
        let before = match value {
            Some(value) => self.turn.state.insert(key, value.into()).filter(|_| false),
            None => self.turn.state.remove(&key),
        };
        Ok(before.is_some() as i32)
    }

    fn write_timer(&mut self, key: &[u8], delay_ms: i64, period_ms: i64, payload: &[u8]) -> Status {
        self.effect()?;
        let millis = |ms: i64| ms.try_into().map(Duration::from_millis);
        let (delay, period) = match (millis(delay_ms), millis(period_ms)) {
            (Ok(delay), Ok(period)) => (delay, period),
            _ => return refuse(Code::INVALID_ARGUMENT, "a timer's delay and period are not negative"),
        };
        let key = name("the name of a timer", key)?;
        fits("the payload", payload.len(), "message", limits::MESSAGE)?;
        if !self.turn.timers.contains_key(&key) && self.turn.timers.len() as u64 >= limits::TIMERS {
            return over("timers", limits::TIMERS);
        }
        let others = self.turn.timers.iter().filter(|pair| *pair.0 != key);
        let used: usize = others.map(|(name, timer)| name.len() + timer.payload.len()).sum();
        if (used + key.len() + payload.len()) as u64 > limits::TIMER_BYTES {
            return over("timer_bytes", limits::TIMER_BYTES);
        }
        self.turn.timers.insert(key, Timer { due: self.time + delay, period, payload: payload.into() });
        Ok(0)
    }

    fn call_tool(&mut self, name: &[u8], args: &[u8]) -> Status {
        let tools = match &mut self.tools {
            None => return refuse(Code::UNSUPPORTED, "this host does not have the feature tools"),
            Some(tools) => tools,
        };
        if self.turn.kind.is_none() {
            return refuse(Code::DENIED, "effects are only collected while a delivery is handled");
        }
        if self.turn.counts.tools >= limits::TOOLS {
            return over("tools", limits::TOOLS);
        }
        self.turn.counts.tools += 1;
        match tools(&text(name), &text(args)) {
            Ok(result) => self.found(result.into(), &mut []),
            Err(e) => refuse(e.code(), e.text()),
        }
    }

    fn write_log(&mut self, level: i32, line: &[u8]) -> Status {
        let level = match level {
            0 => Level::Debug,
            1 => Level::Info,
            2 => Level::Warn,
            3 => Level::Error,
            _ => return refuse(Code::INVALID_ARGUMENT, format!("{} is not a log level", level)),
        };
        let counts = &mut self.turn.counts;
        if counts.log_lines >= limits::LOG_LINES {
            return over("log_lines", limits::LOG_LINES);
        }
        let room = limits::LOG_BYTES as usize - counts.log_bytes;
        if line.len() > room && room < ELLIPSIS.len() {
            return over("log_bytes", limits::LOG_BYTES);
        }
        counts.log_lines += 1;
        counts.log_bytes += line.len().min(room);
        let kept = text(line);
        self.logs.push((level, if line.len() > room { shortened(&kept, room) } else { kept }));
        Ok(0)
    }

    fn find_config(&mut self, key: &[u8], bytes: &mut [u8]) -> Status {
        let key = text(key);
        let config = self.config.clone();
        match Json::parse(&config).ok().and_then(|config| config.get(&key)) {
            Some(value) => self.found(value.text().unwrap_or_else(|| value.raw().into()).into(), bytes),
            None => refuse(Code::NOT_FOUND, format!("the configuration has no attribute {:?}", key)),
        }
    }

    fn find_state(&mut self, key: &[u8], bytes: &mut [u8]) -> Status {
        // The state has no key above the limit.
        let key = if key.len() as u64 > limits::STATE_KEY { text(key) } else { name("a key", key)? };
        match self.turn.state.get(&key).cloned() {
            Some(value) => self.found(value, bytes),
            None => refuse(Code::NOT_FOUND, format!("the state has no key {:?}", key)),
        }
    }
}

impl Host for Fake {
    fn read(&mut self, source: i32, offset: i32, bytes: &mut [u8]) -> i32 {
        let content = self.turn.sources.get(&source).map_or(&[][..], |content| content);
        let rest = content.get(offset.max(0) as usize..).unwrap_or(&[]);
        let n = rest.len().min(bytes.len());
        bytes[..n].copy_from_slice(&rest[..n]);
        n as i32
    }

    fn size(&mut self, source: i32) -> i32 {
        self.turn.sources.get(&source).map_or(0, |content| content.len() as i32)
    }

    fn feature(&mut self, feature: i32) -> i32 {
        let has = |f: Feature| f as i32 == feature;
        let always = [Feature::Timers, Feature::Requests, Feature::Awareness];
        let there = always.into_iter().any(has)
            || has(Feature::Tools) && self.tools.is_some()
            || has(Feature::Fuel) && self.fuel.is_some();
        there as i32
    }

    fn config(&mut self, key: &[u8], bytes: &mut [u8]) -> i32 {
        let status = self.find_config(key, bytes);
        self.status(status)
    }

    fn channel(&mut self, name: &[u8]) -> i32 {
        let name = text(name);
        if name.is_empty() {
            return self.status(refuse(Code::INVALID_ARGUMENT, "an alias is not empty"));
        }
        let known = self.turn.handles.iter().position(|alias| *alias == name);
        known.unwrap_or_else(|| {
            self.turn.handles.push(name);
            self.turn.handles.len() - 1
        }) as i32
    }

    fn send(&mut self, channel: i32, bytes: &[u8], headers: &[u8]) -> i32 {
        let status = self.send_on(channel, bytes, headers);
        self.status(status)
    }

    fn send_to(&mut self, to: &[u8], bytes: &[u8]) -> i32 {
        let status = self.effect().and_then(|_| self.reachable(to)).and_then(|_| self.room(1, bytes.len()));
        let status = status.map(|_| {
            self.turn.sent.push(Sent::to(&text(to), bytes));
            0
        });
        self.status(status)
    }

    fn request(&mut self, to: &[u8], bytes: &[u8], deadline_ms: i64, tag: i64) -> i32 {
        let status = self.ask(to, bytes, deadline_ms, tag);
        self.status(status)
    }

    fn reply(&mut self, bytes: &[u8]) -> i32 {
        let status = self.answer_request(bytes);
        self.status(status)
    }

    fn output(&mut self, bytes: &[u8]) -> i32 {
        let status = self.write_output(bytes);
        self.status(status)
    }

    fn state_get(&mut self, key: &[u8], bytes: &mut [u8]) -> i32 {
        let status = self.find_state(key, bytes);
        self.status(status)
    }

    fn state_set(&mut self, key: &[u8], bytes: &[u8]) -> i32 {
        let status = self.write_state(key, Some(bytes));
        self.status(status)
    }

    fn state_delete(&mut self, key: &[u8]) -> i32 {
        let status = self.write_state(key, None);
        self.status(status)
    }

    fn state_list(&mut self, prefix: &[u8], bytes: &mut [u8]) -> i32 {
        let keys = self.turn.state.keys().filter(|key| key.as_bytes().starts_with(prefix));
        let list: String = keys.flat_map(|key| [key, "\0"]).collect();
        let status = self.found(list.into(), bytes);
        self.status(status)
    }

    fn timer_set(&mut self, name: &[u8], delay_ms: i64, period_ms: i64, bytes: &[u8]) -> i32 {
        let status = self.write_timer(name, delay_ms, period_ms, bytes);
        self.status(status)
    }

    fn timer_cancel(&mut self, name: &[u8]) -> i32 {
        let status = self.effect().map(|_| self.turn.timers.remove(&text(name)).is_some() as i32);
        self.status(status)
    }

    fn tool(&mut self, name: &[u8], args: &[u8]) -> i32 {
        let status = self.call_tool(name, args);
        self.status(status)
    }

    fn http(&mut self, _: &[u8], _: &[u8], _: i64) -> i32 {
        self.status(refuse(Code::UNSUPPORTED, "this host does not have the feature http"))
    }

    fn log(&mut self, level: i32, bytes: &[u8]) -> i32 {
        let status = self.write_log(level, bytes);
        self.status(status)
    }

    fn now(&mut self) -> i64 {
        self.time.as_nanos() as i64
    }

    /// Fills the bytes by splitmix64, so that a test draws the same each time it runs.
    fn random(&mut self, bytes: &mut [u8]) -> i32 {
        for chunk in bytes.chunks_mut(8) {
            self.turn.drawn = self.turn.drawn.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut n = self.turn.drawn;
            n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            chunk.copy_from_slice(&(n ^ (n >> 31)).to_le_bytes()[..chunk.len()]);
        }
        0
    }

    fn fuel_left(&mut self) -> i64 {
        self.fuel.map_or(-1, |fuel| fuel as i64)
    }
}
