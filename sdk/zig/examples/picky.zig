//! Fails in every way that a creature can fail.

const std = @import("std");
const terrarium = @import("terrarium");
const Turn = terrarium.Turn;

pub const creature = terrarium.Creature(.{ .handle = handle, .init = init });

const Config = struct {
    want: []const u8,
    most: i64,
    strict: bool,

    fn read(t: *Turn) !Config {
        try t.configKnows(&.{ "want", "most", "strict" });
        return .{
            .want = try t.configText("want", null),
            .most = try t.configWhole("most", 1, 1000, 10),
            .strict = try t.configBool("strict", false),
        };
    }
};

fn init(t: *Turn) !void {
    _ = try Config.read(t);
}

const Command = enum { echo, big, caught, alias, key, missing, fail, denied, panic, loop, fuel, log };

fn handle(t: *Turn) !void {
    if (t.kind != .message) return;
    const config = try Config.read(t);
    const value = try t.header("want") orelse return t.failWith(.invalid_argument, "the header want is missing", .{});
    if (!std.mem.eql(u8, value, config.want))
        return t.failWith(.invalid_argument, "the header want is {s}, not {s}", .{ value, config.want });
    const text = try t.text();
    if (std.meta.stringToEnum(Command, text)) |command| return act(t, command);
    if (text.len > config.most)
        return t.failWith(.too_large, "the payload has {d} bytes, and at most {d} are allowed", .{ text.len, config.most });
    if (config.strict) t.log(.info, "strict");
    try t.output(text);
}

fn act(t: *Turn, command: Command) !void {
    switch (command) {
        .echo => {
            const seen: terrarium.Header = .{ .name = "seen", .value = "yes" };
            try t.sendAll("echo", try std.mem.concat(t.allocator, terrarium.Header, &.{ try t.headers(), &.{seen} }));
        },
        .big => try big(t),
        .caught => big(t) catch |err| {
            const code = terrarium.raw.codeOf(err) orelse return err;
            try t.output(try t.print("caught {s}", .{terrarium.codeName(code)}));
        },
        .alias => try t.send("nowhere", "x", &.{}),
        .key => try t.stateSet("", "x"),
        .missing => if (try t.stateGet("missing") == null) try t.output("no state"),
        .fail => return t.fail("it went wrong"),
        .denied => return t.failWith(.denied, "not today", .{}),
        .panic => t.panic(@src(), "out of cheese"),
        .loop => while (true) std.mem.doNotOptimizeAway(command),
        .fuel => try t.output(if (t.fuelLeft() == null) "not counted" else "counted"),
        .log => {
            t.log(.debug, "a debug line");
            t.log(.info, "an info line");
            t.log(.warn, "a warn line");
            t.log(.err, "an error line");
        },
    }
}

fn big(t: *Turn) !void {
    const value = try t.allocator.alloc(u8, (1 << 20) + 1);
    @memset(value, 'x');
    try t.stateSet("big", value);
}

test "failures" {
    var host: terrarium.testing.Host = .init(creature);
    defer host.deinit();
    host.config = "{\"want\":\"fly\"}";
    try std.testing.expectError(error.InvalidArgument, host.message("in", "echo"));
    try std.testing.expectEqualStrings("the header want is missing", host.failure);
    const fly: []const terrarium.Header = &.{.{ .name = "want", .value = "fly" }};
    try host.messageWith("in", "echo", fly);
    try std.testing.expectEqual(2, host.lastSent().headers.len);
    try host.messageWith("in", "caught", fly);
    try std.testing.expectEqualStrings("caught too_large", host.lastOutput());
    try host.messageWith("in", "missing", fly);
    try std.testing.expectEqualStrings("no state", host.lastOutput());
    inline for (.{
        .{ "big", error.TooLarge },
        .{ "alias", error.NotConnected },
        .{ "key", error.InvalidArgument },
        .{ "fail", error.Failed },
        .{ "denied", error.Denied },
        .{ "12345678901", error.TooLarge },
        .{ "\xfe", error.InvalidArgument },
    }) |case| try std.testing.expectError(case[1], host.messageWith("in", case[0], fly));
    try std.testing.expectEqual(0, host.effects.state.count());
    try std.testing.expectEqual(1, host.effects.sent.items.len);
}

test "a required attribute" {
    var host: terrarium.testing.Host = .init(creature);
    defer host.deinit();
    try std.testing.expectError(error.NotFound, host.initialize());
    try std.testing.expectEqualStrings("config want: it is required", host.failure);
}
