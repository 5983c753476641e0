//! Counts words.

const std = @import("std");
const terrarium = @import("terrarium");
const Turn = terrarium.Turn;

pub const creature = terrarium.Creature(.{
    .handle = handle,
    .init = init,
    .manifest =
    \\{"name": "tally", "description": "Counts words", "send": [{"alias": "counts"}]}
    ,
});

const Config = struct {
    step: i64,
    prefix: []const u8,

    fn read(t: *Turn) !Config {
        try t.configKnows(&.{ "step", "prefix" });
        return .{ .step = try t.configWhole("step", 1, 1_000_000, 1), .prefix = try t.configText("prefix", "") };
    }
};

fn init(t: *Turn) !void {
    _ = try Config.read(t);
}

const counts = "n/"; // the state key of a count begins with it

fn handle(t: *Turn) !void {
    if (t.kind != .message) return;
    const text = try t.text();
    if (std.mem.eql(u8, text, "?")) return list(t);
    if (std.mem.startsWith(u8, text, "-")) return remove(t, text[1..]);
    try add(t, text);
}

fn list(t: *Turn) !void {
    var lines: std.ArrayList(u8) = .empty;
    for (try t.stateList(counts)) |key| {
        try lines.print(t.allocator, "{s}={d}\n", .{ key[counts.len..], try t.stateWhole(key) });
    }
    try t.output(if (lines.items.len == 0) "empty\n" else lines.items);
}

fn remove(t: *Turn, key: []const u8) !void {
    const existed = try t.stateDelete(try t.print(counts ++ "{s}", .{key}));
    try t.send("counts", try t.print("{s} {s}", .{ key, if (existed) "removed" else "unknown" }), &.{});
}

fn add(t: *Turn, key: []const u8) !void {
    const config = try Config.read(t);
    const state_key = try t.print(counts ++ "{s}", .{key});
    const n = try t.stateWhole(state_key) + config.step;
    try t.stateSetWhole(state_key, n);
    try t.send("counts", try t.print("{s}{s}={d}", .{ config.prefix, key, n }), &.{
        .{ .name = "count", .value = try t.print("{d}", .{n}) },
    });
}

fn pond(config: []const u8) terrarium.testing.Host {
    var host: terrarium.testing.Host = .init(creature);
    host.config = config;
    host.channels = &.{"counts"};
    return host;
}

test "counts" {
    var host = pond("{\"step\":7,\"prefix\":\"p \"}");
    defer host.deinit();
    try host.message("in", "frog");
    try host.message("in", "frog");
    try std.testing.expectEqualStrings("p frog=14", host.lastSent().payload);
    try std.testing.expectEqualStrings("14", host.lastSent().headers[0].value);
    try std.testing.expectEqualStrings("14", host.effects.state.get("n/frog").?);
    try host.message("in", "?");
    try std.testing.expectEqualStrings("frog=14\n", host.lastOutput());
    try host.message("in", "-frog");
    try std.testing.expectEqualStrings("frog removed", host.lastSent().payload);
    try host.message("in", "?");
    try std.testing.expectEqualStrings("empty\n", host.lastOutput());
}

test "a payload that is not UTF-8" {
    var host = pond("{}");
    defer host.deinit();
    try std.testing.expectError(error.InvalidArgument, host.message("in", "\xff"));
    try std.testing.expectEqualStrings("the payload is not UTF-8", host.failure);
}

test "attributes that are refused" {
    for ([_][2][]const u8{
        .{ "{\"step\":0}", "config step: it must be a whole number from 1 to 1000000" },
        .{ "{\"step\":1.5}", "config step: it must be a whole number from 1 to 1000000" },
        .{ "{\"prefix\":1}", "config prefix: it must be a text" },
        .{ "{\"stepp\":1}", "config stepp: the creature has no such attribute; it has step, prefix" },
    }) |case| {
        var host = pond(case[0]);
        defer host.deinit();
        try std.testing.expectError(error.InvalidArgument, host.initialize());
        try std.testing.expectEqualStrings(case[1], host.failure);
    }
}
