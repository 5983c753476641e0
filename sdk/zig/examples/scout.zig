//! Looks around and edits its graph.

const std = @import("std");
const terrarium = @import("terrarium");
const tools = terrarium.tools;
const Turn = terrarium.Turn;
const eql = std.mem.eql;

pub const creature = terrarium.Creature(.{ .handle = handle, .graph_changed = true });

fn handle(t: *Turn) !void {
    switch (t.kind) {
        .start => try t.output(try t.print("{s} starts at revision {d}", .{ try t.self(), try t.awarenessRevision() })),
        .graph_changed => try t.output(try t.print("revision {d}: listens on {s}", .{ try t.awarenessRevision(), try listens(t) })),
        .message => try command(t, try t.text()),
        else => {},
    }
}

fn listens(t: *Turn) ![]const u8 {
    const channels = (try t.awareness()).path(&.{ "channels", "items" }) orelse return "nothing";
    const aliases = try texts(t, channels, "listen");
    return if (aliases.len == 0) "nothing" else aliases;
}

/// The member of each object of a list, joined by commas.
fn texts(t: *Turn, list: terrarium.json.Value, member: []const u8) ![]const u8 {
    var found: std.ArrayList([]const u8) = .empty;
    var items = list.items();
    while (items.next()) |item| {
        const value = item.member(member) orelse continue;
        try found.append(t.allocator, try value.text(t.allocator) orelse continue);
    }
    return std.mem.join(t.allocator, ", ", found.items);
}

const Verb = enum { members, title, make, wire, say, tell, spawn, stop, @"resume", remove, route };

fn command(t: *Turn, text: []const u8) !void {
    var words = std.mem.splitScalar(u8, text, ' ');
    const verb = std.meta.stringToEnum(Verb, words.first()) orelse return unknown(t, text);
    const name = words.next() orelse "";
    const rest: ?[]const u8 = if (words.index == null) null else words.rest();
    const fits = switch (verb) {
        .members, .title => text.len == @tagName(verb).len,
        .wire, .say, .tell, .spawn => rest != null,
        else => name.len > 0 and rest == null,
    };
    if (!fits) return unknown(t, text);
    if (verb == .title) return t.output(std.mem.sliceTo(try t.awarenessMarkdown(), '\n'));
    if (!t.hasFeature(.tools)) return t.output("no tools");
    switch (verb) {
        .members => if (tools.groupStatus(t, .{})) |status| {
            const names = try texts(t, status.member("creatures") orelse .parse("[]"), "name");
            try t.output(try t.print("members: {s}", .{names}));
        } else |err| try refused(t, "group_status", err),
        .say => _ = tools.sendChannel(t, .{ .channel = name, .payload = .{ .bytes = rest.? }, .headers = try t.json(.{ .tone = "loud" }) }) catch |err|
            try refused(t, "send_channel", err),
        .tell => _ = tools.groupSend(t, .{ .creature = name, .payload = .{ .bytes = rest.? } }) catch |err|
            try refused(t, "group_send", err),
        .spawn => if (tools.groupAddNode(t, .{ .species = name, .name = rest.? })) |spawned| {
            const got = spawned.member("name") orelse return t.fail("the result has no name");
            try t.output(try t.print("spawned {s}", .{try got.text(t.allocator) orelse ""}));
        } else |err| try refused(t, "group_add_node", err),
        .make => try report(t, "group_channel", tools.groupChannel(t, .{ .action = .create, .name = name }), "made {s}", name),
        .wire => try report(t, "group_channel", tools.groupChannel(t, .{
            .action = .wire,
            .channel = name,
            .creature = try t.self(),
            .direction = .listen,
            .alias = rest,
        }), "wired {s}", name),
        .stop => try report(t, "group_stop_node", tools.groupStopNode(t, .{ .creature = name }), "stop {s}", name),
        .@"resume" => try report(t, "group_start_node", tools.groupStartNode(t, .{ .creature = name }), "resume {s}", name),
        .remove => try report(t, "group_remove_node", tools.groupRemoveNode(t, .{ .creature = name }), "remove {s}", name),
        .route => try report(t, "group_wire", tools.groupWire(t, .{
            .action = .add,
            .from = try t.self(),
            .to = name,
            .with_content = true,
        }), "routed to {s}", name),
        .title => unreachable,
    }
}

fn unknown(t: *Turn, text: []const u8) !void {
    return t.failWith(.failed, "unknown command: {s}", .{text});
}

fn report(t: *Turn, tool: []const u8, result: Turn.Error!terrarium.json.Value, comptime done: []const u8, name: []const u8) !void {
    if (result) |_| try t.output(try t.print(done, .{name})) else |err| try refused(t, tool, err);
}

/// Outputs the code of an error of the host, so that the turn continues.
fn refused(t: *Turn, tool: []const u8, err: Turn.Error) !void {
    const code = terrarium.raw.codeOf(err) orelse return err;
    try t.output(try t.print("{s}: {s}", .{ tool, terrarium.codeName(code) }));
}

fn answer(host: *terrarium.testing.Host, name: []const u8, args: terrarium.json.Value) terrarium.testing.Answer {
    _ = host;
    if (eql(u8, name, "group_status")) return .{ .ok = "{\"creatures\":[{\"name\":\"self\"},{\"name\":\"frog\"}]}" };
    if (eql(u8, name, "group_add_node")) return .{ .ok = "{\"name\":\"ted\"}" };
    const target = args.member("creature") orelse args.member("name") orelse return .{ .ok = "{}" };
    return if (target.equals("nobody")) .{ .refused = .{ .code = .not_found, .text = "there is no creature" } } else .{ .ok = "{}" };
}

test "commands" {
    var host: terrarium.testing.Host = .init(creature);
    defer host.deinit();
    host.tools = answer;
    host.awareness_markdown = "# `self`\n\nmore";
    for ([_][2][]const u8{
        .{ "members", "members: self, frog" },
        .{ "title", "# `self`" },
        .{ "make pond", "made pond" },
        .{ "wire pond water", "wired pond" },
        .{ "spawn tadpole ted", "spawned ted" },
        .{ "stop frog", "stop frog" },
        .{ "stop nobody", "group_stop_node: not_found" },
        .{ "route frog", "routed to frog" },
    }) |case| {
        try host.message("in", case[0]);
        try std.testing.expectEqualStrings(case[1], host.lastOutput());
    }
    try host.message("in", "say out hello there");
    try std.testing.expectEqualStrings(
        \\{"channel":"out","payload":"hello there","headers":{"tone":"loud"}}
    , host.effects.tool_calls.items[host.effects.tool_calls.items.len - 1].args);
    try std.testing.expectError(error.Failed, host.message("in", "make two words"));
    host.features.remove(.tools);
    try host.message("in", "make pond");
    try std.testing.expectEqualStrings("no tools", host.lastOutput());
}

test "awareness" {
    var host: terrarium.testing.Host = .init(creature);
    defer host.deinit();
    try host.start();
    try std.testing.expectEqualStrings("self starts at revision 1", host.lastOutput());
    try host.setAwareness("{\"channels\":{\"items\":[{\"listen\":\"a\"},{\"send\":\"b\"},{\"listen\":\"c\"}]}}");
    try std.testing.expectEqualStrings("revision 2: listens on a, c", host.lastOutput());
    try host.setAwareness("{}");
    try std.testing.expectEqualStrings("revision 3: listens on nothing", host.lastOutput());
}
