const std = @import("std");
const terrarium = @import("terrarium");

pub fn build(b: *std.Build) void {
    for ([_][]const u8{ "shout", "tally", "ticker", "oracle", "scout", "picky" }) |name| {
        terrarium.addCreature(b, .{ .name = name, .root_source_file = b.path(b.fmt("{s}.zig", .{name})) });
    }
}
