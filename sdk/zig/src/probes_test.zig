//! The fake host answers as the host: sdk/reference/probes.txt has the answers of the host,
//! and describes its lines.

const std = @import("std");
const raw = @import("raw.zig");
const testing = @import("testing.zig");
const json = @import("json.zig");
const Turn = @import("turn.zig").Turn;

const creature = @import("creature.zig").Creature(.{ .handle = handle });

const zeros: [1048577]u8 = @splat(0);

fn handle(t: *Turn) !void {
    var lines = std.mem.splitScalar(u8, try t.payload(), '\n');
    while (lines.next()) |line| {
        const call = line[0 .. (std.mem.find(u8, line, "= ") orelse return error.Failed) + 2];
        var words = std.mem.splitScalar(u8, call, ' ');
        const op = words.next().?;
        const name = words.next().?;
        const text = words.next().?;
        var numbers: [4]i64 = undefined;
        for (&numbers) |*n| n.* = try std.fmt.parseInt(i64, words.next().?, 10);
        var made: i64 = 0;
        var status: i32 = 0;
        while (made < numbers[3]) : (made += 1) {
            status = probe(t, op, try decoded(t.allocator, name, made), try decoded(t.allocator, text, made), zeros[0..@intCast(numbers[0])], numbers[1], numbers[2]);
            if (status < 0) break;
        }
        const got = try std.fmt.allocPrint(t.allocator, "{s}{d} {d}", .{ call, made, status });
        try std.testing.expectEqualStrings(line, got);
    }
}

fn decoded(a: std.mem.Allocator, word: []const u8, made: i64) ![]const u8 {
    var out: std.ArrayList(u8) = .empty;
    if (std.mem.eql(u8, word, "-")) return "";
    if (word.len > 2 and word[1] == '^') {
        const all = try a.alloc(u8, try std.fmt.parseInt(usize, word[2..], 10));
        @memset(all, word[0]);
        return all;
    }
    var i: usize = 0;
    while (i < word.len) : (i += 1) switch (word[i]) {
        '#' => try out.print(a, "{d}", .{made}),
        '%' => {
            try out.append(a, try std.fmt.parseInt(u8, word[i + 1 ..][0..2], 16));
            i += 2;
        },
        else => |c| try out.append(a, c),
    };
    return out.items;
}

fn probe(t: *Turn, op: []const u8, name: []const u8, text: []const u8, payload: []const u8, a: i64, b: i64) i32 {
    const h = t.host;
    const Op = enum { config, send, send_all, send_to, request, reply, output, state_get, state_set, state_delete, state_list, timer_set, timer_cancel, log, tool };
    switch (std.meta.stringToEnum(Op, op).?) {
        .config => return h.config(name, &.{}),
        .send => {
            const channel = h.channel(name);
            return if (channel < 0) channel else h.send(channel, payload, text);
        },
        .send_all => return h.send(raw.all_channels, payload, text),
        .send_to => return h.sendTo(name, payload),
        .request => return h.request(name, payload, a, b),
        .reply => return h.reply(payload),
        .output => return h.output(payload),
        .state_get => return h.stateGet(name, &.{}),
        .state_set => return h.stateSet(name, payload),
        .state_delete => return h.stateDelete(name),
        .state_list => return h.stateList(name, &.{}),
        .timer_set => return h.timerSet(name, a, b, payload),
        .timer_cancel => return h.timerCancel(name),
        .log => return h.log(@intCast(a), payload),
        .tool => return @min(h.tool(name, text), 0),
    }
}

fn tools(_: *testing.Host, name: []const u8, _: json.Value) testing.Answer {
    if (std.mem.eql(u8, name, "group_status")) return .{ .ok = "{}" };
    return .{ .refused = .{ .code = .not_found, .text = "there is no such tool" } };
}

test "the fake host answers as the host" {
    var groups = std.mem.splitSequence(u8, std.mem.trimEnd(u8, @embedFile("probes"), "\n"), "\n\n");
    _ = groups.next(); // the comment
    while (groups.next()) |group| {
        const end = std.mem.findScalar(u8, group, '\n').?;
        var host: testing.Host = .init(creature);
        defer host.deinit();
        host.config = "{\"text\":\"a\",\"list\":[1,\"b\"],\"null\":null}";
        host.channels = &.{ "out", "common" };
        host.creatures = &.{"frog"};
        host.tools = tools;
        if (std.mem.startsWith(u8, group, "request "))
            _ = try host.request(group[end + 1 ..])
        else
            try host.message("in", group[end + 1 ..]);
    }
}
