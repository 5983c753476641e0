const std = @import("std");
const terrarium = @import("terrarium");

pub fn build(b: *std.Build) void {
    const strip = b.option(bool, "strip", "Leave out debugging information (default)") orelse true;
    for ([_][]const u8{ "shout", "tally", "ticker", "oracle", "scout", "picky" }) |name| {
        terrarium.addCreature(b, .{ .name = name, .root_source_file = b.path(b.fmt("{s}.zig", .{name})), .strip = strip });
    }
}
