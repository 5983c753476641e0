//! Repeats messages in capital letters.

const std = @import("std");
const terrarium = @import("terrarium");

pub const creature = terrarium.Creature(.{ .handle = handle });

fn handle(t: *terrarium.Turn) !void {
    if (t.kind != .message) return;
    const payload = try t.payload();
    for (payload) |*byte| byte.* = std.ascii.toUpper(byte.*);
    try t.sendAll(payload, &.{});
}

test "capital letters" {
    var host: terrarium.testing.Host = .init(creature);
    defer host.deinit();
    try host.message("in", "frog \xff!");
    try std.testing.expectEqualStrings("FROG \xff!", host.lastSent().payload);
}

test "other kinds are ignored" {
    var host: terrarium.testing.Host = .init(creature);
    defer host.deinit();
    try host.start();
    try std.testing.expectEqual(0, host.effects.sent.items.len);
}
