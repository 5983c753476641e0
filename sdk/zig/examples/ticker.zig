//! Sets timers.

const std = @import("std");
const terrarium = @import("terrarium");
const Turn = terrarium.Turn;

pub const creature = terrarium.Creature(.{ .handle = handle, .init = init });

const Config = struct {
    every_ms: i64,
    limit: i64,

    fn read(t: *Turn) !Config {
        try t.configKnows(&.{ "every_ms", "limit" });
        return .{
            .every_ms = try t.configWhole("every_ms", 1, std.time.ms_per_day, 1000),
            .limit = try t.configWhole("limit", 0, 1_000_000, 0),
        };
    }
};

fn init(t: *Turn) !void {
    _ = try Config.read(t);
}

fn handle(t: *Turn) !void {
    switch (t.kind) {
        .start => {
            const every_ms = (try Config.read(t)).every_ms;
            try t.setTimer("tick", every_ms, every_ms, "tick");
        },
        .timer => {
            const name = try t.timerName();
            if (std.mem.eql(u8, name, "tick")) return tick(t);
            try t.sendAll(try t.print("{s}: {s}", .{ name, try t.payload() }), &.{});
        },
        .message => try command(t, try t.text()),
        else => {},
    }
}

fn tick(t: *Turn) !void {
    const limit = (try Config.read(t)).limit;
    const n = try t.stateWhole("ticks") + 1;
    try t.stateSetWhole("ticks", n);
    try t.sendAll(try t.print("tick {d} at {d}", .{ n, @divFloor(t.now(), std.time.ns_per_ms) }), &.{});
    if (limit == 0 or n != limit) return;
    _ = try t.cancelTimer("tick");
    t.log(.info, try t.print("done after {d} ticks", .{n}));
}

fn command(t: *Turn, text: []const u8) !void {
    if (std.mem.eql(u8, text, "stop")) {
        return t.log(.info, if (try t.cancelTimer("tick")) "stopped" else "was not running");
    }
    var words = std.mem.splitScalar(u8, text, ' ');
    if (std.mem.eql(u8, words.first(), "in")) if (words.next()) |delay| if (words.next()) |name| if (words.index != null) {
        const ms: terrarium.json.Value = .{ .raw = delay };
        if (ms.whole()) |n| if (n >= 0 and n <= std.time.ms_per_day) return t.setTimer(name, n, 0, words.rest());
    };
    return t.failWith(.failed, "unknown command: {s}", .{text});
}

test "ticks until the limit" {
    var host: terrarium.testing.Host = .init(creature);
    defer host.deinit();
    host.config = "{\"every_ms\":250,\"limit\":3}";
    try host.start();
    try host.advance(249);
    try std.testing.expectEqual(0, host.effects.sent.items.len);
    try host.advance(1000);
    try std.testing.expectEqual(3, host.effects.sent.items.len);
    try std.testing.expectEqualStrings("tick 3 at 750", host.lastSent().payload);
    try std.testing.expectEqualStrings("done after 3 ticks", host.lastLog().text);
    try host.message("in", "stop");
    try std.testing.expectEqualStrings("was not running", host.lastLog().text);
}

test "other timers" {
    var host: terrarium.testing.Host = .init(creature);
    defer host.deinit();
    try host.message("in", "in 20 b two words");
    try host.message("in", "in 10 a ");
    try host.advance(20);
    try std.testing.expectEqualStrings("a: ", host.effects.sent.items[0].payload);
    try std.testing.expectEqualStrings("b: two words", host.effects.sent.items[1].payload);
    for ([_][]const u8{ "in", "in x y z", "in -1 a b", "in 86400001 a b", "in +1 a b", "in 1 a" }) |text| {
        try std.testing.expectError(error.Failed, host.message("in", text));
        try std.testing.expectEqualStrings(text, host.failure["unknown command: ".len..]);
    }
}
