//! Write [creatures](https://github.com/seed47132306/terrarium) in Rust: WebAssembly modules that exchange messages.
//!
//! A creature is a function that handles one *delivery*, such as a message. This one repeats messages in capital
//! letters:
//!
//! ```
//! use terrarium::{Kind, Result, Turn};
//!
//! terrarium::creature!(handle);
//!
//! fn handle(turn: &mut Turn) -> Result<()> {
//!     if turn.kind() == Kind::Message {
//!         turn.send_all(turn.payload().to_ascii_uppercase())?;
//!     }
//!     Ok(())
//! }
//! ```
//!
//! A call of the handler is a *turn*. If it returns `Ok`, all effects of the turn apply together; if it returns an error
//! or panics, none of them applies. What outlasts a turn is in the state ([`Turn::state_set`]): static variables are only
//! a cache, which may be lost between any two turns.
//!
//! For a creature that answers each text with at most one text, a function is enough: see [`map!`].
//!
//! Every error of the author can be returned with `?`. It fails the turn with the code `failed`, and its text is logged;
//! see [`Error`].
//!
//! Unit tests need no WebAssembly: `fake::Fake` runs a creature natively.
//!
//! Build a creature with `cargo build --release --target wasm32-unknown-unknown`, as a crate of the type `cdylib`.
#![warn(missing_docs, missing_debug_implementations, rust_2018_idioms)]

mod config;
mod error;
#[cfg(not(target_arch = "wasm32"))]
pub mod fake;
#[doc(hidden)]
pub mod guest;
mod headers;
pub mod json;
mod macros;
mod manifest;
#[rustfmt::skip]
pub mod raw;
mod state;
#[rustfmt::skip]
pub mod tools;
mod turn;

pub use error::{Error, Result};
pub use guest::map;
pub use headers::Headers;
pub use json::Json;
pub use manifest::{Alias, Manifest};
pub use raw::{Code, Feature, Kind, Level, Source};
pub use turn::Turn;

/// The examples of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
