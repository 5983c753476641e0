//! What the macros call.

use crate::raw::{Kind, Level};
use crate::{Result, Turn};

/// Sends what `f` makes of a message on every channel that the creature may send on; see [`map!`](crate::map!).
pub fn map<R: Into<Option<String>>>(turn: &mut Turn, f: impl FnOnce(&str) -> R) -> Result<()> {
    if turn.kind() == Kind::Message {
        if let Some(answer) = f(&turn.text()?).into() {
            turn.send_all(answer)?;
        }
    }
    Ok(())
}

/// Logs why a call failed, and returns its status.
pub(crate) fn finish(turn: &Turn, result: &Result<()>) -> i32 {
    match result {
        Ok(()) => 0,
        Err(e) => {
            turn.log(Level::Error, e.to_string());
            // Only a code of 1 or more makes the turn fail.
            -e.code().0.max(1)
        }
    }
}

/// Runs a handler for a delivery. A kind that this kit does not know is ignored.
#[cfg(target_arch = "wasm32")]
pub fn handle(handler: fn(&mut Turn) -> Result<()>, kind: i32, size: i32) -> i32 {
    report_panics();
    match Kind::from_number(kind) {
        None => 0,
        Some(kind) => {
            let mut turn = Turn::new(kind, size);
            let result = handler(&mut turn);
            finish(&turn, &result)
        }
    }
}

/// Runs an init function.
#[cfg(target_arch = "wasm32")]
pub fn init(f: fn(&Turn) -> Result<()>) -> i32 {
    report_panics();
    let turn = Turn::new(Kind::Start, 0);
    finish(&turn, &f(&turn))
}

/// Runs a stop function.
#[cfg(target_arch = "wasm32")]
pub fn stop(f: fn(&Turn)) {
    report_panics();
    f(&Turn::new(Kind::Start, 0));
}

/// Makes panics log their text and place. Without it, a panic is a trap without a reason.
#[cfg(target_arch = "wasm32")]
fn report_panics() {
    use std::sync::atomic::{AtomicBool, Ordering};
    static DONE: AtomicBool = AtomicBool::new(false);
    if DONE.swap(true, Ordering::Relaxed) {
        return;
    }
    std::panic::set_hook(Box::new(|panic| {
        let payload = panic.payload();
        let text = match payload.downcast_ref::<String>() {
            Some(text) => text,
            None => payload.downcast_ref::<&str>().copied().unwrap_or("a panic without a text"),
        };
        let turn = Turn::new(Kind::Start, 0);
        match panic.location() {
            Some(place) => turn.log(Level::Error, format!("{} ({}:{})", text, place.file(), place.line())),
            None => turn.log(Level::Error, text),
        }
        core::arch::wasm32::unreachable()
    }));
}
