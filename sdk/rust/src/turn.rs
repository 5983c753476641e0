use std::time::Duration;

#[cfg(not(target_arch = "wasm32"))]
use crate::fake::Fake;
use crate::raw::{Code, Feature, Host, Kind, Level, Source, ALL_CHANNELS};
use crate::{Error, Headers, Json, Result};

/// One call of a creature: its delivery, and the effects that it collects.
///
/// Methods that only read take `&self`. During init and stop, a creature gets a shared reference, because it may only
/// read there.
///
/// Each call reads from the host again and returns a value that the caller owns.
#[derive(Debug)]
pub struct Turn {
    kind: Kind,
    size: i32,
    #[cfg(not(target_arch = "wasm32"))]
    host: std::cell::RefCell<Fake>,
}

#[cfg(target_arch = "wasm32")]
impl Turn {
    pub(crate) fn new(kind: Kind, size: i32) -> Turn {
        Turn { kind, size }
    }

    pub(crate) fn host(&self) -> &mut crate::raw::Wasm {
        Box::leak(Box::new(crate::raw::Wasm)) // it has no size, so nothing is allocated
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl Turn {
    pub(crate) fn new(kind: Kind, size: i32, host: Fake) -> Turn {
        Turn { kind, size, host: host.into() }
    }

    pub(crate) fn host(&self) -> std::cell::RefMut<'_, Fake> {
        self.host.borrow_mut()
    }

    pub(crate) fn into_host(self) -> Fake {
        self.host.into_inner()
    }
}

/// The delivery.
impl Turn {
    /// Says why the creature is called. During init and stop there is no delivery, and the kind is `Start`.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the bytes of the delivery. They need not be UTF-8.
    pub fn payload(&self) -> Vec<u8> {
        self.read(Source::Payload, self.size)
    }

    /// Returns the payload, which must be UTF-8.
    pub fn text(&self) -> Result<String> {
        String::from_utf8(self.payload()).map_err(|_| Error::new(Code::INVALID_ARGUMENT, "the payload is not UTF-8"))
    }

    /// Returns the listen alias of the message's channel, or the creature's own name for a direct message.
    pub fn channel(&self) -> String {
        self.source_text(Source::Channel)
    }

    /// Returns the sender's name; `None` for a message from outside.
    pub fn sender(&self) -> Option<String> {
        Some(self.source_text(Source::Sender)).filter(|name| !name.is_empty())
    }

    /// Returns the id of the message, which is unique everywhere.
    pub fn message_id(&self) -> String {
        self.source_text(Source::MessageId)
    }

    /// Returns the creature's own name.
    pub fn self_name(&self) -> String {
        self.source_text(Source::SelfName)
    }

    /// Returns the headers of the message.
    pub fn headers(&self) -> Headers {
        Headers::from_bytes(self.source(Source::Headers))
    }

    /// Returns the value of one header. It need not be UTF-8.
    pub fn header(&self, name: &str) -> Option<Vec<u8>> {
        self.headers().get(name).map(Vec::from)
    }

    /// Returns the details of this kind of delivery, a JSON object.
    pub fn detail(&self) -> String {
        self.source_text(Source::Detail)
    }

    /// Tells whether a message was sent directly to this creature.
    pub fn direct(&self) -> bool {
        self.of_detail("direct", |v| v.bool()).unwrap_or(false)
    }

    /// Returns the number of the attempt to handle this delivery: 1 for the first.
    pub fn attempt(&self) -> u32 {
        self.of_detail("attempt", |v| v.whole()).map_or(1, |n| n as u32)
    }

    /// Returns the name of the timer, for a delivery of the kind `timer`.
    pub fn timer_name(&self) -> String {
        self.of_detail("name", |v| v.text()).unwrap_or_default()
    }

    /// Returns the tag of the request, for a delivery of the kind `result`.
    pub fn tag(&self) -> i64 {
        self.of_detail("tag", |v| v.text()).and_then(|tag| tag.parse().ok()).unwrap_or(0)
    }

    /// Returns `ok` or the name of an error, for a delivery of the kind `result`.
    pub fn result_code(&self) -> String {
        self.of_detail("code", |v| v.text()).unwrap_or_default()
    }

    fn of_detail<T>(&self, member: &str, read: fn(Json<'_>) -> Option<T>) -> Option<T> {
        read(Json::parse(&self.detail()).ok()?.get(member)?)
    }
}

/// What the creature can know.
impl Turn {
    /// Returns the awareness document as JSON: what the creature can know about itself and its graph.
    pub fn awareness(&self) -> String {
        self.source_text(Source::AwarenessJson)
    }

    /// Returns the awareness document as Markdown.
    pub fn awareness_markdown(&self) -> String {
        self.source_text(Source::AwarenessMarkdown)
    }

    /// Returns the revision of the awareness document, which rises whenever the document changes; 0 if there is none.
    pub fn awareness_revision(&self) -> u64 {
        self.source_text(Source::AwarenessRevision).parse().unwrap_or(0)
    }

    /// Tells whether the host has an optional part of the contract.
    pub fn has_feature(&self, feature: Feature) -> bool {
        self.host().feature(feature as i32) > 0
    }

    /// Returns the time of the delivery, since 1970. It does not advance during a turn, unless the creature was granted
    /// the real clock.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.host().now().max(0) as u64)
    }

    /// Fills `bytes` with random bytes, which are the same when the turn is run again, unless the creature was granted
    /// real randomness.
    pub fn random(&self, bytes: &mut [u8]) {
        self.host().random(bytes);
    }

    /// Returns the fuel left in the turn; `None` if the host does not count fuel.
    pub fn fuel_left(&self) -> Option<u64> {
        self.host().fuel_left().try_into().ok()
    }

    /// Writes a log line. Lines are kept even if the turn fails; those beyond the limits of the turn are dropped.
    pub fn log(&self, level: Level, text: impl AsRef<str>) {
        self.host().log(level as i32, text.as_ref().as_bytes());
    }

    /// Returns the complete content of a source; it is empty if the host does not have it.
    pub fn source(&self, source: Source) -> Vec<u8> {
        let size = self.host().size(source as i32);
        self.read(source, size)
    }

    fn read(&self, source: Source, size: i32) -> Vec<u8> {
        let mut bytes = vec![0; size.max(0) as usize];
        let n = self.host().read(source as i32, 0, &mut bytes);
        bytes.truncate(n.max(0) as usize);
        bytes
    }

    pub(crate) fn source_text(&self, source: Source) -> String {
        utf8(self.source(source))
    }

    /// Returns the result of the last call, of that size.
    pub(crate) fn result(&self, size: i32) -> Vec<u8> {
        self.read(Source::Result, size)
    }

    /// Converts a negative status into an error.
    pub(crate) fn check(&self, op: &'static str, status: i32) -> Result<i32> {
        if status >= 0 {
            return Ok(status);
        }
        Err(Error::refused(op, Code(-status), self.source_text(Source::Error)))
    }
}

/// Effects. They apply if the turn succeeds.
impl Turn {
    /// Sends a message on the channel that the creature knows as `alias`.
    pub fn send(&mut self, alias: &str, payload: impl AsRef<[u8]>) -> Result<()> {
        self.send_with(alias, payload, &Headers::new())
    }

    /// Sends a message with headers on the channel that the creature knows as `alias`.
    ///
    /// ```
    /// # use terrarium::{Headers, Result, Turn};
    /// # fn example(turn: &mut Turn) -> Result<()> {
    /// turn.send_with("counts", "frog=3", &Headers::from([("count", "3")]))
    /// # }
    /// ```
    pub fn send_with(&mut self, alias: &str, payload: impl AsRef<[u8]>, headers: &Headers) -> Result<()> {
        let handle = self.host().channel(alias.as_bytes());
        self.check("channel", handle)?;
        self.send_on(handle, payload.as_ref(), headers).map(drop)
    }

    /// Sends a message on every channel that the creature may send on, and returns how many there are.
    pub fn send_all(&mut self, payload: impl AsRef<[u8]>) -> Result<usize> {
        self.send_on(ALL_CHANNELS, payload.as_ref(), &Headers::new())
    }

    /// Sends a message with headers on every channel that the creature may send on, and returns how many there are.
    pub fn send_all_with(&mut self, payload: impl AsRef<[u8]>, headers: &Headers) -> Result<usize> {
        self.send_on(ALL_CHANNELS, payload.as_ref(), headers)
    }

    fn send_on(&mut self, handle: i32, payload: &[u8], headers: &Headers) -> Result<usize> {
        let status = self.host().send(handle, payload, headers.as_bytes());
        self.check("send", status).map(|n| n as usize)
    }

    /// Sends a direct message to one creature of the graph, by id or name.
    pub fn send_to(&mut self, creature: &str, payload: impl AsRef<[u8]>) -> Result<()> {
        let status = self.host().send_to(creature.as_bytes(), payload.as_ref());
        self.check("send_to", status).map(drop)
    }

    /// Appends to the output of the turn.
    pub fn output(&mut self, payload: impl AsRef<[u8]>) -> Result<()> {
        let status = self.host().output(payload.as_ref());
        self.check("output", status).map(drop)
    }

    /// Sends a direct message and requests a reply, which arrives as a delivery of the kind `result` with the same tag.
    /// The deadline is rounded down to milliseconds.
    pub fn request(&mut self, creature: &str, payload: impl AsRef<[u8]>, deadline: Duration, tag: i64) -> Result<()> {
        let status = Host::request(&mut *self.host(), creature.as_bytes(), payload.as_ref(), millis(deadline), tag);
        self.check("request", status).map(drop)
    }

    /// Answers the request that is being handled.
    pub fn reply(&mut self, payload: impl AsRef<[u8]>) -> Result<()> {
        let status = self.host().reply(payload.as_ref());
        self.check("reply", status).map(drop)
    }

    /// Sets or replaces the timer of that name. It fires after `delay`, and then after every `period` if there is one.
    /// Both are rounded down to milliseconds. `payload` is that of the delivery of the kind `timer`.
    pub fn set_timer(
        &mut self,
        name: &str,
        delay: Duration,
        period: Option<Duration>,
        payload: impl AsRef<[u8]>,
    ) -> Result<()> {
        let status = self.host().timer_set(name.as_bytes(), millis(delay), period.map_or(0, millis), payload.as_ref());
        self.check("timer_set", status).map(drop)
    }

    /// Cancels a timer, and tells whether it was set.
    pub fn cancel_timer(&mut self, name: &str) -> Result<bool> {
        let status = self.host().timer_cancel(name.as_bytes());
        self.check("timer_cancel", status).map(|n| n > 0)
    }

    /// Calls a group tool with JSON arguments and returns its JSON result. There is also one method for each tool.
    pub fn tool(&mut self, name: &str, args: &str) -> Result<String> {
        let status = self.host().tool(name.as_bytes(), args.as_bytes());
        self.check("tool", status).map(|size| utf8(self.result(size)))
    }

    /// Sends an HTTP request after the turn has taken effect. `request` is JSON with `method`, `url` and `headers`. The
    /// response arrives as a delivery of the kind `result` with the same tag.
    pub fn http(&mut self, request: &str, body: impl AsRef<[u8]>, tag: i64) -> Result<()> {
        let status = self.host().http(request.as_bytes(), body.as_ref(), tag);
        self.check("http", status).map(drop)
    }
}

fn millis(time: Duration) -> i64 {
    time.as_millis().try_into().unwrap_or(i64::MAX)
}

/// Names, keys, ids, JSON and texts of the host are UTF-8.
pub(crate) fn utf8(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_default()
}
