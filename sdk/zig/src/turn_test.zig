const std = @import("std");
const terrarium = @import("terrarium.zig");
const Turn = terrarium.Turn;
const Host = terrarium.testing.Host;
const expectEqualStrings = std.testing.expectEqualStrings;

const creature = terrarium.Creature(.{ .handle = handle, .init = init, .stop = stop, .graph_changed = true });

fn init(t: *Turn) !void {
    t.stateSet("k", "v") catch |err| if (err != error.Denied) return err;
}

fn stop(t: *Turn) void {
    t.log(.info, "stopped");
}

const long_text: [80_000]u8 = @bitCast(@as([40_000][2]u8, @splat("\u{e4}".*))); // 40,000 characters

fn handle(t: *Turn) !void {
    const text = try t.text();
    if (std.mem.eql(u8, text, "own")) return error.FrogEscaped;
    if (std.mem.eql(u8, text, "code")) return error.NotPrivileged;
    if (std.mem.eql(u8, text, "later")) {
        t.stateSet("", "x") catch {};
        return error.Denied; // another error than the one that the host has a text for
    }
    if (std.mem.eql(u8, text, "number")) {
        try t.stateSet("n", "twelve");
        _ = try t.stateWhole("n");
    }
    if (std.mem.eql(u8, text, "effects")) {
        try t.stateSet("k", "v");
        try t.send("out", "x", &.{});
        try t.output("x");
        try t.setTimer("tick", 1, 0, "");
        t.log(.info, "before");
        return t.fail("enough");
    }
    if (std.mem.eql(u8, text, "long")) try t.stateSet(&@as([513]u8, @splat('k')), "v");
    if (std.mem.eql(u8, text, "message")) try t.sendAll(try t.allocator.alloc(u8, (1 << 20) + 1), &.{});
    if (std.mem.eql(u8, text, "verbose")) return t.fail(&long_text);
    if (std.mem.eql(u8, text, "flood")) for (0..1025) |_| try t.send("out", "", &.{});
}

fn expectFailure(payload: []const u8, err: terrarium.raw.Error, text: []const u8) !void {
    var host: Host = .init(creature);
    defer host.deinit();
    try std.testing.expectError(err, host.message("in", payload));
    try expectEqualStrings(text, host.failure);
}

test "the text and the code of a failure" {
    try expectFailure("own", error.Failed, "FrogEscaped");
    try expectFailure("code", error.NotPrivileged, "not_privileged");
    try expectFailure("later", error.Denied, "denied");
    try expectFailure("number", error.InvalidArgument, "state n: it is not a whole number");
    try expectFailure("long", error.TooLarge, "state_set: 513 bytes are more than the limit state_key, which is 512 bytes (too_large)");
    try expectFailure("message", error.TooLarge, "send: 1048577 bytes are more than the limit message, which is 1048576 bytes (too_large)");
    try expectFailure("flood", error.Limit, "send: the limit sends is reached (limit)");
}

test "a long text of an error is cut at the end of a character" {
    var host: Host = .init(creature);
    defer host.deinit();
    try std.testing.expectError(error.Failed, host.message("in", "verbose"));
    const text = host.logs.items[0].text;
    try std.testing.expectEqual(65_535, text.len);
    try expectEqualStrings("\u{e4}…", text[text.len - 5 ..]);
}

test "a failed turn leaves no effects but its log lines" {
    var host: Host = .init(creature);
    defer host.deinit();
    try std.testing.expectError(error.Failed, host.message("in", "effects"));
    try std.testing.expectEqual(0, host.effects.state.count() + host.effects.timers.count());
    try std.testing.expectEqual(0, host.effects.sent.items.len + host.effects.outputs.items.len);
    try std.testing.expectEqual(2, host.logs.items.len);
}

test "init may only read" {
    var host: Host = .init(creature);
    defer host.deinit();
    try host.initialize();
    try std.testing.expectEqual(0, host.effects.state.count());
    try host.stop();
    try expectEqualStrings("stopped", host.lastLog().text);
}

test "every code has a name and an error" {
    for (std.enums.values(terrarium.Code)) |code| {
        try expectEqualStrings(@tagName(code), terrarium.codeName(code));
        if (code != .ok) try std.testing.expectEqual(code, terrarium.raw.codeOf(terrarium.raw.errorOf(code)).?);
    }
    const unknown: terrarium.Code = @fromBackingInt(-99);
    try expectEqualStrings("unknown", terrarium.codeName(unknown));
    try std.testing.expectEqual(error.Failed, terrarium.raw.errorOf(unknown));
}

test "timers fire in the order in which they come due" {
    const Ordered = terrarium.Creature(.{ .handle = struct {
        fn handle(t: *Turn) !void {
            if (t.kind != .timer) {
                try t.setTimer("slow", 30, 0, "");
                try t.setTimer("fast", 20, 20, "");
            } else try t.output(try t.print("{s} {d}", .{ try t.timerName(), @divExact(t.now(), std.time.ns_per_ms) }));
        }
    }.handle });
    var host: Host = .init(Ordered);
    defer host.deinit();
    try host.message("in", "");
    try host.advance(40);
    for ([_][]const u8{ "fast 20", "slow 30", "fast 40" }, host.effects.outputs.items) |want, got| try expectEqualStrings(want, got);
    try std.testing.expectEqual(1, host.effects.timers.count());
}
