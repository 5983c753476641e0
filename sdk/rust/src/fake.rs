//! A host in memory, which runs a creature natively in unit tests, without WebAssembly.
//!
//! ```
//! use terrarium::fake::{Fake, Sent};
//! use terrarium::{Kind, Result, Turn};
//!
//! fn shout(turn: &mut Turn) -> Result<()> {
//!     if turn.kind() == Kind::Message {
//!         turn.send_all(turn.payload().to_ascii_uppercase())?;
//!     }
//!     Ok(())
//! }
//!
//! let mut fake = Fake::new(shout);
//! fake.channels = vec!["loud".into()];
//! fake.message("quiet", "hello").unwrap();
//! assert_eq!(fake.sent, [Sent::on("loud", "HELLO")]);
//! ```

use std::collections::BTreeMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::Duration;

use crate::json::Object;
use crate::raw::{Code, Kind, Level, Source};
use crate::{guest, Error, Headers, Json, Result, Turn};

mod bytes;
mod host;
#[cfg(test)]
mod probes;

pub use bytes::{Bytes, Request, Sent, Timer};

type Handle = fn(&mut Turn) -> Result<()>;
type Init = fn(&Turn) -> Result<()>;
type Tools = Box<dyn FnMut(&str, &str) -> Result<String>>;

/// The surroundings of one creature. Tests set and read its fields between deliveries.
///
/// A turn that fails leaves no effects but its log lines. The limits on messages, state, output, timers and calls are
/// the defaults of the contract. HTTP is not available.
pub struct Fake {
    /// The name of the creature.
    pub name: String,
    /// The configuration, a JSON object.
    pub config: String,
    /// The send aliases that are bound to a channel.
    pub channels: Vec<String>,
    /// The creatures that it can reach directly. Without any, it can reach every name.
    pub creatures: Vec<String>,
    /// The state, as successful turns left it.
    pub state: BTreeMap<String, Bytes>,
    /// The messages that successful turns sent, in their order.
    pub sent: Vec<Sent>,
    /// The output of successful turns, one for each turn that has any.
    pub outputs: Vec<Bytes>,
    /// The log lines of all turns.
    pub logs: Vec<(Level, String)>,
    /// The requests that wait for a result.
    pub requests: Vec<Request>,
    /// The timers that are set, by name.
    pub timers: BTreeMap<String, Timer>,
    /// Handles calls of group tools: name and arguments. Without it, the host lacks the feature `tools`.
    pub tools: Option<Tools>,
    /// The time of the next delivery, since 1970.
    pub time: Duration,
    /// The fuel left in every turn; `None` if the host does not count fuel.
    pub fuel: Option<u64>,
    /// The awareness document as Markdown.
    pub awareness_markdown: String,
    awareness: String,
    revision: u64,
    turn: host::Collected,
    handle: Handle,
    init: Init,
}

impl std::fmt::Debug for Fake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fake").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Fake {
    /// Makes a host for a creature that has no init function.
    pub fn new(handle: Handle) -> Fake {
        Fake::with_init(handle, |_| Ok(()))
    }

    /// Makes a host for a creature with an init function.
    pub fn with_init(handle: Handle, init: Init) -> Fake {
        Fake {
            name: "self".into(),
            config: "{}".into(),
            channels: Vec::new(),
            creatures: Vec::new(),
            state: BTreeMap::new(),
            sent: Vec::new(),
            outputs: Vec::new(),
            logs: Vec::new(),
            requests: Vec::new(),
            timers: BTreeMap::new(),
            tools: None,
            time: Duration::ZERO,
            fuel: None,
            awareness_markdown: String::new(),
            awareness: String::new(),
            revision: 0,
            turn: host::Collected::default(),
            handle,
            init,
        }
    }

    /// Runs the init function, which may only read.
    pub fn init(&mut self) -> Result<()> {
        let init = self.init;
        self.run(Kind::Start, &[], true, |turn| init(turn))
    }

    /// Delivers the start of the creature's life.
    pub fn start(&mut self) -> Result<()> {
        self.deliver(Kind::Start, &[])
    }

    /// Delivers a message from outside on a listen alias.
    pub fn message(&mut self, alias: &str, payload: impl AsRef<[u8]>) -> Result<()> {
        self.message_with(alias, payload, &Headers::new())
    }

    /// Delivers a message with headers on a listen alias.
    pub fn message_with(&mut self, alias: &str, payload: impl AsRef<[u8]>, headers: &Headers) -> Result<()> {
        let sources = [
            (Source::Channel, alias.as_bytes()),
            (Source::Payload, payload.as_ref()),
            (Source::Headers, headers.as_bytes()),
        ];
        self.deliver(Kind::Message, &sources)
    }

    /// Delivers a request, and returns the reply if there is one.
    pub fn request(&mut self, payload: impl AsRef<[u8]>) -> Result<Option<Bytes>> {
        self.deliver(Kind::Request, &[(Source::Payload, payload.as_ref())])?;
        Ok(self.turn.reply.take())
    }

    /// Delivers the reply to a request of the creature.
    pub fn answer(&mut self, tag: i64, payload: impl AsRef<[u8]>) -> Result<()> {
        self.result(tag, "ok", payload.as_ref())
    }

    /// Delivers an error as the result of a request of the creature.
    pub fn fail(&mut self, tag: i64, code: Code, text: &str) -> Result<()> {
        self.result(tag, code.name(), text.as_bytes())
    }

    fn result(&mut self, tag: i64, code: &str, payload: &[u8]) -> Result<()> {
        let waiting = self.requests.iter().position(|request| request.tag == tag);
        let waiting = waiting.ok_or_else(|| Error::new(Code::NOT_FOUND, format!("no request has the tag {}", tag)))?;
        self.requests.remove(waiting);
        let mut detail = Object::new();
        detail.text("tag", &tag.to_string());
        detail.text("code", code);
        self.deliver(Kind::Result, &[(Source::Payload, payload), (Source::Detail, detail.end().as_bytes())])
    }

    /// Lets time pass. Timers that come due are delivered in their order; the first that fails ends the call.
    pub fn advance(&mut self, time: Duration) -> Result<()> {
        let end = self.time + time;
        while let Some((name, due)) = self.next_timer().filter(|next| next.1 <= end) {
            self.time = due;
            let timer = self.timers[&name].clone();
            if timer.period.is_zero() {
                self.timers.remove(&name);
            } else if let Some(timer) = self.timers.get_mut(&name) {
                timer.due += timer.period;
            }
            let mut detail = Object::new();
            detail.text("name", &name);
            let detail = detail.end();
            self.deliver(Kind::Timer, &[(Source::Payload, &*timer.payload), (Source::Detail, detail.as_bytes())])?;
        }
        self.time = end;
        Ok(())
    }

    fn next_timer(&self) -> Option<(String, Duration)> {
        self.timers.iter().map(|(name, timer)| (name.clone(), timer.due)).min_by_key(|next| next.1)
    }

    /// Sets the awareness document, a JSON object. Its revision is the member `revision`, or the next number without it.
    pub fn set_awareness(&mut self, json: &str) -> Result<()> {
        let revision = Json::parse(json)?.get("revision").and_then(Json::whole);
        self.revision = revision.map_or(self.revision + 1, |revision| revision as u64);
        self.awareness = json.into();
        Ok(())
    }

    /// Delivers a change of the awareness document.
    pub fn graph_changed(&mut self) -> Result<()> {
        let mut detail = Object::new();
        detail.json("revision", &self.revision.to_string());
        self.deliver(Kind::GraphChanged, &[(Source::Detail, detail.end().as_bytes())])
    }

    /// Makes a delivery of any kind. `sources` has what the creature reads; the detail needs no `kind`, `time` and
    /// `attempt`. If the creature fails, its error is returned; a panic has the code `trapped`.
    pub fn deliver(&mut self, kind: Kind, sources: &[(Source, &[u8])]) -> Result<()> {
        let handle = self.handle;
        self.run(kind, sources, false, handle)
    }

    fn run(
        &mut self,
        kind: Kind,
        sources: &[(Source, &[u8])],
        read_only: bool,
        call: impl FnOnce(&mut Turn) -> Result<()>,
    ) -> Result<()> {
        let size = self.begin(kind, sources, read_only);
        let handle = self.handle;
        let mut turn = Turn::new(kind, size, std::mem::replace(self, Fake::new(handle)));
        let result = catch_unwind(AssertUnwindSafe(|| call(&mut turn)))
            .unwrap_or_else(|payload| Err(Error::new(Code::TRAPPED, panic_text(&*payload))));
        guest::finish(&turn, &result);
        *self = turn.into_host();
        if result.is_ok() {
            self.commit();
        } else {
            self.turn.reply = None;
        }
        result
    }
}

fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    match payload.downcast_ref::<String>() {
        Some(text) => text.clone(),
        None => payload.downcast_ref::<&str>().copied().unwrap_or("a panic without a text").into(),
    }
}
