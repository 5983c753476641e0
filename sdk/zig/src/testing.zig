//! A fake host, which runs a creature natively in unit tests.
//!
//!     var host: terrarium.testing.Host = .init(creature);
//!     defer host.deinit();
//!     try host.message("in", "hello");
//!     try std.testing.expectEqualStrings("HELLO", host.lastSent().payload);
//!
//! A delivery whose turn fails returns the error of the turn's code, and `failure` has the
//! text that the creature logged. A failed turn leaves no effects but its log lines.

const std = @import("std");
const raw = @import("raw.zig");
const json = @import("json.zig");
const headers = @import("headers.zig");
const Turn = @import("turn.zig").Turn;
const calls = @import("calls.zig");
const Allocator = std.mem.Allocator;

pub const Header = headers.Header;

/// A message that the creature has sent. `channel` is an alias, or empty for a direct message;
/// `to` is the receiver of a direct message.
pub const Sent = struct { channel: []const u8 = "", to: []const u8 = "", payload: []const u8, headers: []const Header = &.{} };
pub const Log = struct { level: raw.Level, text: []const u8 };
pub const Request = struct { to: []const u8, payload: []const u8, deadline_ms: i64, tag: i64 };
pub const Timer = struct { due_ms: i64, period_ms: i64, payload: []const u8 };
pub const ToolCall = struct { name: []const u8, args: []const u8 };
pub const Http = struct { head: []const u8, body: []const u8, tag: i64 };

/// The answer of a tool: its result as JSON, or an error.
pub const Answer = union(enum) { ok: []const u8, refused: struct { code: raw.Code, text: []const u8 } };

/// What a delivery shows to the creature.
pub const Sources = struct {
    payload: []const u8 = "",
    channel: []const u8 = "",
    sender: []const u8 = "",
    message_id: []const u8 = "m1",
    headers: []const Header = &.{},
    /// The members of the detail besides kind, attempt and time: `,"name":"tick"`.
    detail: []const u8 = "",
    attempt: u32 = 1,
};

/// What the turns of the creature have left behind; a failed turn restores it.
pub const Effects = struct {
    state: std.array_hash_map.String([]const u8) = .empty,
    timers: std.array_hash_map.String(Timer) = .empty,
    sent: std.ArrayList(Sent) = .empty,
    outputs: std.ArrayList([]const u8) = .empty,
    requests: std.ArrayList(Request) = .empty,
    https: std.ArrayList(Http) = .empty,
    tool_calls: std.ArrayList(ToolCall) = .empty,
    reply: ?[]const u8 = null,

    fn clone(e: Effects, a: Allocator) Allocator.Error!Effects {
        return .{
            .state = try e.state.clone(a),
            .timers = try e.timers.clone(a),
            .sent = try e.sent.clone(a),
            .outputs = try e.outputs.clone(a),
            .requests = try e.requests.clone(a),
            .https = try e.https.clone(a),
            .tool_calls = try e.tool_calls.clone(a),
            .reply = e.reply,
        };
    }
};

/// A host with one creature. Set its fields before a delivery, and read them after it.
pub const Host = struct {
    arena: std.heap.ArenaAllocator,
    run_init: *const fn (*Turn) i32,
    run_handle: *const fn (*Turn) i32,
    run_stop: *const fn (*Turn) void,
    wants_graph_changed: bool,

    /// The creature's own name.
    self: []const u8 = "self",
    /// The configuration, a JSON object.
    config: []const u8 = "{}",
    /// The aliases that are bound to a channel, on which the creature may send.
    channels: []const []const u8 = &.{"out"},
    /// The creatures that it can reach directly.
    creatures: []const []const u8 = &.{},
    /// The features that the host has.
    features: std.enums.EnumSet(raw.Feature) = .full,
    /// The time, in milliseconds since 1970.
    time_ms: i64 = 0,
    /// What `fuelLeft` returns while the host has the feature fuel.
    fuel: i64 = raw.limits.fuel,
    /// Answers the calls of tools; without it no tool exists.
    tools: ?*const fn (host: *Host, name: []const u8, args: json.Value) Answer = null,
    awareness: []const u8 = "{}",
    awareness_markdown: []const u8 = "",
    revision: u64 = 1,

    effects: Effects = .{},
    logs: std.ArrayList(Log) = .empty,
    /// The text with which the last turn failed.
    failure: []const u8 = "",

    /// The turn that runs, for the hostcalls.
    turn: calls.Delivery = .{},
    initialized: bool = false,

    /// Makes a host for a creature, as `terrarium.Creature` returns it.
    pub fn init(comptime creature: type) Host {
        return .{
            .arena = .init(std.testing.allocator),
            .run_init = creature.runInit,
            .run_handle = creature.runHandle,
            .run_stop = creature.runStop,
            .wants_graph_changed = creature.graph_changed,
        };
    }

    pub fn deinit(host: *Host) void {
        host.arena.deinit();
    }

    /// Calls the creature's init, as for a new instance. Without this call the first delivery
    /// does it.
    pub fn initialize(host: *Host) !void {
        host.initialized = false;
        var t = try host.begin(@fromBackingInt(0), .{}, false);
        try host.end(host.run_init(&t));
        host.initialized = true;
    }

    /// Calls the creature's stop.
    pub fn stop(host: *Host) !void {
        var t = try host.begin(@fromBackingInt(0), .{}, false);
        host.run_stop(&t);
    }

    /// Delivers anything.
    pub fn deliver(host: *Host, kind: raw.Kind, sources: Sources) !void {
        if (!host.initialized) try host.initialize();
        const before = try host.effects.clone(host.arena.allocator());
        var t = try host.begin(kind, sources, true);
        host.end(host.run_handle(&t)) catch |err| {
            host.effects = before;
            return err;
        };
    }

    pub fn start(host: *Host) !void {
        try host.deliver(.start, .{});
    }

    /// Delivers a message on the channel that the creature knows as alias.
    pub fn message(host: *Host, alias: []const u8, payload: []const u8) !void {
        try host.messageWith(alias, payload, &.{});
    }

    pub fn messageWith(host: *Host, alias: []const u8, payload: []const u8, with: []const Header) !void {
        try host.deliver(.message, .{ .payload = payload, .channel = alias, .headers = with, .detail = ",\"direct\":false,\"seq\":1" });
    }

    /// Delivers a request, and returns the reply; null if the creature did not reply.
    pub fn request(host: *Host, payload: []const u8) !?[]const u8 {
        host.effects.reply = null;
        try host.deliver(.request, .{ .payload = payload, .channel = host.self, .detail = ",\"deadline_ms\":1000" });
        return host.effects.reply;
    }

    /// Delivers the reply to a request of the creature.
    pub fn answer(host: *Host, tag: i64, payload: []const u8) !void {
        try host.result(tag, "ok", payload);
    }

    /// Delivers the error with which a request of the creature ended.
    pub fn fail(host: *Host, tag: i64, code: raw.Code, text: []const u8) !void {
        try host.result(tag, @tagName(code), text);
    }

    fn result(host: *Host, tag: i64, code: []const u8, payload: []const u8) !void {
        for (host.effects.requests.items, 0..) |r, i| {
            if (r.tag != tag) continue;
            _ = host.effects.requests.orderedRemove(i);
            return host.deliver(.result, .{ .payload = payload, .detail = try host.print(",\"tag\":\"{d}\",\"code\":\"{s}\"", .{ tag, code }) });
        }
        return error.NoSuchRequest;
    }

    /// Advances the time, and delivers the timers that come due, in their order.
    pub fn advance(host: *Host, ms: i64) !void {
        const until = host.time_ms + ms;
        while (host.nextTimer(until)) |i| {
            const name = host.effects.timers.keys()[i];
            const timer = host.effects.timers.values()[i];
            host.time_ms = @max(host.time_ms, timer.due_ms);
            if (timer.period_ms > 0) {
                host.effects.timers.values()[i].due_ms +|= timer.period_ms;
            } else {
                host.effects.timers.orderedRemoveAt(i);
            }
            const quoted = try json.write(host.arena.allocator(), name);
            try host.deliver(.timer, .{ .payload = timer.payload, .detail = try host.print(",\"name\":{s}", .{quoted.raw}) });
        }
        host.time_ms = until;
    }

    fn nextTimer(host: *Host, until: i64) ?usize {
        var next: ?usize = null;
        for (host.effects.timers.values(), 0..) |timer, i| {
            if (timer.due_ms > until) continue;
            if (next == null or timer.due_ms < host.effects.timers.values()[next.?].due_ms) next = i;
        }
        return next;
    }

    /// Changes the awareness document. A creature that wants it gets a delivery of the kind
    /// graph_changed.
    pub fn setAwareness(host: *Host, document: []const u8) !void {
        host.awareness = document;
        host.revision += 1;
        if (host.wants_graph_changed)
            try host.deliver(.graph_changed, .{ .detail = try host.print(",\"revision\":{d}", .{host.revision}) });
    }

    /// The message that was sent last.
    pub fn lastSent(host: *Host) Sent {
        const sent = host.effects.sent.items;
        if (sent.len == 0) @panic("the creature has sent nothing");
        return sent[sent.len - 1];
    }

    /// The output of the last turn that had one.
    pub fn lastOutput(host: *Host) []const u8 {
        const outputs = host.effects.outputs.items;
        if (outputs.len == 0) @panic("the creature has no output");
        return outputs[outputs.len - 1];
    }

    /// The log line that was written last.
    pub fn lastLog(host: *Host) Log {
        if (host.logs.items.len == 0) @panic("the creature has logged nothing");
        return host.logs.items[host.logs.items.len - 1];
    }

    pub fn print(host: *Host, comptime format: []const u8, args: anytype) ![]const u8 {
        return std.fmt.allocPrint(host.arena.allocator(), format, args);
    }

    fn begin(host: *Host, kind: raw.Kind, sources: Sources, effects: bool) !Turn {
        host.turn = .{ .sources = sources, .kind = kind, .effects = effects, .reply_open = kind == .request };
        host.turn.first_log = host.logs.items.len;
        if (effects) host.turn.detail = try host.print("{{\"kind\":\"{s}\",\"attempt\":{d},\"time\":{d}{s}}}", .{
            std.enums.tagName(raw.Kind, kind) orelse "unknown", sources.attempt, host.time_ms * std.time.ns_per_ms, sources.detail,
        });
        host.turn.headers = try headers.encode(host.arena.allocator(), sources.headers);
        return .init(.{ .host = host }, host.arena.allocator(), kind, sources.payload.len);
    }

    fn end(host: *Host, status: i32) !void {
        host.failure = "";
        if (status >= 0) return;
        const logs = host.logs.items[host.turn.first_log..];
        if (logs.len > 0) host.failure = logs[logs.len - 1].text;
        return raw.errorOf(@fromBackingInt(status));
    }
};
