/// Makes a function the creature of this module.
///
/// The function gets every delivery. Options follow, in any order:
///
/// - `init = f`: `f` is called once for every instance, before the first delivery. It may only read; an error there
///   prevents the creature from starting. Use it to check the configuration.
/// - `stop = f`: `f` is called before an orderly close. It may only read, and a host need not call it.
/// - `graph_changed`: requests deliveries of the kind `graph_changed`.
/// - `manifest = m`: puts a [`Manifest`](crate::Manifest) into the module.
///
/// ```
/// use terrarium::{manifest, Alias, Kind, Manifest, Result, Turn};
///
/// terrarium::creature!(
///     handle,
///     init = init,
///     stop = |turn| turn.log(terrarium::Level::Info, "good night"),
///     graph_changed,
///     manifest = Manifest { send: &[Alias::new("report", "the revisions")], ..manifest!() },
/// );
///
/// fn init(turn: &Turn) -> Result<()> {
///     turn.config_knows(&[])
/// }
///
/// fn handle(turn: &mut Turn) -> Result<()> {
///     if turn.kind() == Kind::GraphChanged {
///         turn.send("report", turn.awareness_revision().to_string())?;
///     }
///     Ok(())
/// }
/// ```
#[macro_export]
macro_rules! creature {
    ($handle:expr $(, $($option:tt)*)?) => {
        const _: () = {
            const HANDLE: fn(&mut $crate::Turn) -> $crate::Result<()> = $handle;
            const _: fn(&mut $crate::Turn) -> $crate::Result<()> = HANDLE; // a use where there is no Wasm

            #[cfg(target_arch = "wasm32")]
            #[no_mangle]
            extern "C" fn terrarium_abi_v1() {}

            #[cfg(target_arch = "wasm32")]
            #[no_mangle]
            extern "C" fn creature_handle(kind: i32, size: i32) -> i32 {
                $crate::guest::handle(HANDLE, kind, size)
            }
        };
        $($crate::__creature_option!($($option)*);)?
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __creature_option {
    () => {};
    (init = $init:expr $(, $($option:tt)*)?) => {
        const _: () = {
            const INIT: fn(&$crate::Turn) -> $crate::Result<()> = $init;
            const _: fn(&$crate::Turn) -> $crate::Result<()> = INIT; // a use where there is no Wasm

            #[cfg(target_arch = "wasm32")]
            #[no_mangle]
            extern "C" fn creature_init() -> i32 {
                $crate::guest::init(INIT)
            }
        };
        $($crate::__creature_option!($($option)*);)?
    };
    (stop = $stop:expr $(, $($option:tt)*)?) => {
        const _: () = {
            const STOP: fn(&$crate::Turn) = $stop;
            const _: fn(&$crate::Turn) = STOP; // a use where there is no Wasm

            #[cfg(target_arch = "wasm32")]
            #[no_mangle]
            extern "C" fn creature_stop() {
                $crate::guest::stop(STOP)
            }
        };
        $($crate::__creature_option!($($option)*);)?
    };
    (graph_changed $(, $($option:tt)*)?) => {
        const _: () = {
            #[cfg(target_arch = "wasm32")]
            #[no_mangle]
            extern "C" fn terrarium_graph_changed() {}
        };
        $($crate::__creature_option!($($option)*);)?
    };
    (manifest = $manifest:expr $(, $($option:tt)*)?) => {
        const _: () = {
            const MANIFEST: $crate::Manifest = $manifest;

            #[cfg_attr(target_arch = "wasm32", link_section = "terrarium.creature")]
            #[used]
            static SECTION: [u8; MANIFEST.size()] = MANIFEST.json();
        };
        $($crate::__creature_option!($($option)*);)?
    };
}

/// Makes a function from text to text a creature. It gets the payload of each message, and what it returns is sent on
/// every channel that the creature may send on.
///
/// The function returns a `String`, or an `Option<String>` to send nothing. A payload that is not UTF-8 fails the turn.
/// The options of [`creature!`](crate::creature!) can follow.
///
/// ```
/// terrarium::map!(shout);
///
/// fn shout(text: &str) -> String {
///     text.to_uppercase()
/// }
/// ```
#[macro_export]
macro_rules! map {
    ($f:expr $(, $($option:tt)*)?) => {
        $crate::creature!(|turn| $crate::map(turn, $f) $(, $($option)*)?);
    };
}

/// Makes a [`Manifest`](crate::Manifest) with the name, version, description and licence of the crate.
#[macro_export]
macro_rules! manifest {
    () => {
        $crate::Manifest {
            name: env!("CARGO_PKG_NAME"),
            version: env!("CARGO_PKG_VERSION"),
            description: env!("CARGO_PKG_DESCRIPTION"),
            licence: env!("CARGO_PKG_LICENSE"),
            ..$crate::Manifest::EMPTY
        }
    };
}
