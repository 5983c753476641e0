//! Asks and answers.

const std = @import("std");
const terrarium = @import("terrarium");
const Turn = terrarium.Turn;
const eql = std.mem.eql;

pub const creature = terrarium.Creature(.{ .handle = handle, .init = init });

fn init(t: *Turn) !void {
    try t.configKnows(&.{});
}

fn handle(t: *Turn) !void {
    switch (t.kind) {
        .message => try message(t, try t.text()),
        .request => try answer(t, try t.text()),
        .result => try t.send("answers", try t.print("#{d} {s}: {s}", .{ try t.tag(), try t.resultCode(), try t.payload() }), &.{}),
        else => {},
    }
}

fn message(t: *Turn, text: []const u8) !void {
    var words = std.mem.splitScalar(u8, text, ' ');
    const verb = words.first();
    if (words.next()) |name| if (words.index != null) {
        if (eql(u8, verb, "ask")) return ask(t, name, words.rest());
        if (eql(u8, verb, "tell")) return t.sendTo(name, words.rest());
    };
    if (eql(u8, text, "draw")) return draw(t);
    const channel = if (try t.direct()) "direct" else try t.channel();
    const sender = try t.sender();
    try t.output(try t.print("{s} from {s}: {s}", .{ channel, if (sender.len == 0) "outside" else sender, text }));
}

fn ask(t: *Turn, name: []const u8, question: []const u8) !void {
    const tag = try t.stateWhole("asked") + 1;
    try t.stateSetWhole("asked", tag);
    try t.request(name, question, 1000, tag);
}

fn draw(t: *Turn) !void {
    var first: [16]u8 = undefined;
    var second: [16]u8 = undefined;
    t.random(&first);
    t.random(&second);
    try t.output(if (eql(u8, &first, &second)) "same" else "different");
}

fn answer(t: *Turn, text: []const u8) !void {
    if (eql(u8, text, "silence")) return;
    if (eql(u8, text, "refuse")) return t.failWith(.denied, "I refuse", .{});
    if (eql(u8, text, "twice")) {
        try t.reply("once");
        return t.reply("again");
    }
    try t.reply(try t.print("you asked: {s}", .{text}));
}

test "requests" {
    var host: terrarium.testing.Host = .init(creature);
    defer host.deinit();
    try std.testing.expectEqualStrings("you asked: why", (try host.request("why")).?);
    try std.testing.expectEqual(null, try host.request("silence"));
    try std.testing.expectError(error.Denied, host.request("refuse"));
    try std.testing.expectEqualStrings("I refuse", host.failure);
    try std.testing.expectError(error.AlreadyExists, host.request("twice"));
    try std.testing.expect(std.mem.startsWith(u8, host.failure, "reply: "));
    try std.testing.expect(std.mem.endsWith(u8, host.failure, " (already_exists)"));
}

test "questions and their results" {
    var host: terrarium.testing.Host = .init(creature);
    defer host.deinit();
    host.channels = &.{"answers"};
    host.creatures = &.{"sage"};
    try host.message("in", "ask sage what is a pond");
    try std.testing.expectEqualStrings("what is a pond", host.effects.requests.items[0].payload);
    try host.answer(1, "water");
    try std.testing.expectEqualStrings("#1 ok: water", host.lastSent().payload);
    try host.message("in", "ask sage x");
    try host.fail(2, .deadline, "too late");
    try std.testing.expectEqualStrings("#2 deadline: too late", host.lastSent().payload);
    try host.message("in", "tell sage good morning");
    try std.testing.expectEqualStrings("sage", host.lastSent().to);
}

test "other messages" {
    var host: terrarium.testing.Host = .init(creature);
    defer host.deinit();
    try host.message("in", "draw");
    try std.testing.expectEqualStrings("different", host.lastOutput());
    try host.message("in", "hello");
    try std.testing.expectEqualStrings("in from outside: hello", host.lastOutput());
    try host.deliver(.message, .{ .payload = "hi", .sender = "ann", .detail = ",\"direct\":true" });
    try std.testing.expectEqualStrings("direct from ann: hi", host.lastOutput());
}
