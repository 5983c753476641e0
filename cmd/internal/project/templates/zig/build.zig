const std = @import("std");
const terrarium = @import("terrarium");

pub fn build(b: *std.Build) void {
    const debug = b.option(bool, "debug", "Keep the names of functions, and check for errors") orelse false;
    terrarium.addCreature(b, .{
        .name = "NAME",
        .root_source_file = b.path("NAME.zig"),
        .optimize = if (debug) .debug else .small,
    });
}
