//! Creatures for terrarium. A creature declares its functions with `Creature`; each
//! delivery reaches it as a `Turn`. `testing.Host` runs it in unit tests.

pub const raw = @import("raw.zig");
pub const tools = @import("tools.zig");
pub const json = @import("json.zig");
pub const testing = @import("testing.zig");

pub const Creature = @import("creature.zig").Creature;
pub const panic = @import("creature.zig").panic;
pub const Turn = @import("turn.zig").Turn;
pub const Header = @import("headers.zig").Header;
pub const codeName = @import("turn.zig").codeName;
pub const Error = Turn.Error;
pub const Code = raw.Code;
pub const Kind = raw.Kind;
pub const Level = raw.Level;
pub const Feature = raw.Feature;

test {
    _ = json;
    _ = @import("turn_test.zig");
}
