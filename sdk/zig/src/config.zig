//! The typed methods of `Turn` for its configuration.

const std = @import("std");
const json = @import("json.zig");
const Turn = @import("turn.zig").Turn;

fn refuse(t: *Turn, key: []const u8, why: []const u8) Turn.Error {
    return t.failText(error.InvalidArgument, try t.print("config {s}: {s}", .{ key, why }));
}

/// The attribute; null if it is missing and there is a default.
fn attribute(t: *Turn, key: []const u8, has_default: bool) Turn.Error!?json.Value {
    const value = (try t.configJson()).member(key);
    if (value == null and !has_default) return t.failText(error.NotFound, try t.print("config {s}: it is required", .{key}));
    return value;
}

/// An attribute that is a text. Without a default it is required.
pub fn text(t: *Turn, key: []const u8, default: ?[]const u8) Turn.Error![]const u8 {
    const value = try attribute(t, key, default != null) orelse return default.?;
    return try value.text(t.allocator) orelse refuse(t, key, "it must be a text");
}

/// An attribute that is a whole number from least to most. Without a default it is required.
pub fn whole(t: *Turn, key: []const u8, least: i64, most: i64, default: ?i64) Turn.Error!i64 {
    const value = try attribute(t, key, default != null) orelse return default.?;
    if (value.whole()) |n| if (n >= least and n <= most) return n;
    return refuse(t, key, try t.print("it must be a whole number from {d} to {d}", .{ least, most }));
}

/// An attribute that is true or false. Without a default it is required.
pub fn boolean(t: *Turn, key: []const u8, default: ?bool) Turn.Error!bool {
    const value = try attribute(t, key, default != null) orelse return default.?;
    return value.boolean() orelse refuse(t, key, "it must be true or false");
}

/// Refuses every attribute that is not in the list, so that a misspelt one is reported.
pub fn knows(t: *Turn, names: []const []const u8) Turn.Error!void {
    var all = (try t.configJson()).members();
    next: while (all.next()) |m| {
        const key = try m.name.text(t.allocator) orelse "";
        for (names) |name| if (std.mem.eql(u8, name, key)) continue :next;
        const has = if (names.len == 0) "none" else try std.mem.join(t.allocator, ", ", names);
        return refuse(t, key, try t.print("the creature has no such attribute; it has {s}", .{has}));
    }
}
