//! The hostcalls of the fake host: the methods of `raw.Host`, with the default limits.

const std = @import("std");
const raw = @import("raw.zig");
const json = @import("json.zig");
const headers = @import("headers.zig");
const testing = @import("testing.zig");
const codeName = @import("turn.zig").codeName;
const limits = raw.limits;

/// What the fake host keeps for the time of one delivery.
pub const Delivery = struct {
    sources: testing.Sources = .{},
    kind: raw.Kind = @fromBackingInt(0),
    effects: bool = false, // whether effects are allowed
    reply_open: bool = false,
    detail: []const u8 = "",
    headers: []const u8 = "",
    result: []const u8 = "",
    err: []const u8 = "",
    failure: []const u8 = "",
    calling: []const u8 = "", // the hostcall
    first_log: usize = 0,
    log_bytes: usize = 0,
    sends: usize = 0,
    send_bytes: usize = 0,
    output_bytes: usize = 0,
    has_output: bool = false,
    written: std.array_hash_map.String(void) = .empty, // the keys that the turn has written
    tools: usize = 0,
    drawn: u64 = 0,
};

/// The hostcalls of one host.
pub const Calls = struct {
    host: *testing.Host,

    fn refuse(c: Calls, code: raw.Code, text: []const u8) i32 {
        c.host.turn.err = text;
        c.host.turn.failure = c.format("{s}: {s} ({s})", .{ c.host.turn.calling, text, codeName(code) });
        return @backingInt(code);
    }

    fn limit(c: Calls, name: []const u8) i32 {
        return c.refuse(.limit, c.format("the limit {s} is reached", .{name}));
    }

    fn tooLarge(c: Calls, name: []const u8, size_: usize, most: usize) i32 {
        return c.refuse(.too_large, c.format("{d} bytes are more than the limit {s}, which is {d} bytes", .{ size_, name, most }));
    }

    fn format(c: Calls, comptime text: []const u8, args: anytype) []const u8 {
        return c.host.print(text, args) catch @panic("out of memory");
    }

    fn copy(c: Calls, bytes: []const u8) []const u8 {
        return c.host.arena.allocator().dupe(u8, bytes) catch @panic("out of memory");
    }

    fn append(c: Calls, list: anytype, item: anytype) i32 {
        list.append(c.host.arena.allocator(), item) catch @panic("out of memory");
        return 0;
    }

    /// Why an effect is refused: the phase, or a feature that the host lacks.
    fn closed(c: Calls, needs: ?raw.Feature) ?i32 {
        if (!c.host.turn.effects) return c.refuse(.denied, "effects are possible only in creature_handle");
        if (needs) |f| if (!c.host.features.contains(f)) return c.refuse(.unsupported, "the host lacks the feature");
        return null;
    }

    fn result(c: Calls, bytes: []const u8, out: []u8) i32 {
        c.host.turn.result = bytes;
        const n = @min(bytes.len, out.len);
        @memcpy(out[0..n], bytes[0..n]);
        return @intCast(bytes.len);
    }

    fn content(c: Calls, which: raw.Source) []const u8 {
        const turn = &c.host.turn;
        return switch (which) {
            .payload => turn.sources.payload,
            .channel => turn.sources.channel,
            .sender => turn.sources.sender,
            .message_id => if (turn.effects) turn.sources.message_id else "",
            .headers => turn.headers,
            .detail => turn.detail,
            .config => c.host.config,
            .awareness_json => c.host.awareness,
            .awareness_markdown => c.host.awareness_markdown,
            .awareness_revision => c.format("{d}", .{c.host.revision}),
            .result => turn.result,
            .err => turn.err,
            .failure => turn.failure,
            .self => c.host.self,
        };
    }

    pub fn read(c: Calls, which: i32, offset: i32, out: []u8) i32 {
        c.host.turn.calling = "read";
        const all = c.content(std.enums.fromInt(raw.Source, which) orelse return c.refuse(.not_found, "there is no such source"));
        if (offset < 0) return c.refuse(.invalid_argument, "the offset is negative");
        const rest = all[@min(all.len, @as(usize, @intCast(offset)))..];
        const n = @min(rest.len, out.len);
        @memcpy(out[0..n], rest[0..n]);
        return @intCast(n);
    }

    pub fn size(c: Calls, which: i32) i32 {
        c.host.turn.calling = "size";
        return @intCast(c.content(std.enums.fromInt(raw.Source, which) orelse return c.refuse(.not_found, "there is no such source")).len);
    }

    pub fn feature(c: Calls, which: i32) i32 {
        return @intFromBool(c.host.features.contains(std.enums.fromInt(raw.Feature, which) orelse return 0));
    }

    pub fn config(c: Calls, key: []const u8, out: []u8) i32 {
        c.host.turn.calling = "config";
        const value = json.Value.parse(c.host.config).member(key) orelse
            return c.refuse(.not_found, c.format("the configuration has no attribute {s}", .{key}));
        const text = value.text(c.host.arena.allocator()) catch @panic("out of memory");
        return c.result(text orelse value.raw, out);
    }

    pub fn channel(c: Calls, alias: []const u8) i32 {
        c.host.turn.calling = "channel";
        if (alias.len == 0) return c.refuse(.invalid_argument, "an alias is not empty");
        for (c.host.channels, 0..) |name, i| if (std.mem.eql(u8, name, alias)) return @intCast(i);
        c.host.turn.err = c.format("the creature does not send on a channel {s}; connect it first", .{alias});
        return unbound;
    }

    const unbound: i32 = limits.handles; // the handle of an alias that is bound to no channel

    pub fn send(c: Calls, handle: i32, bytes: []const u8, with: []const u8) i32 {
        c.host.turn.calling = "send";
        if (c.closed(null)) |status| return status;
        if (handle == unbound) return c.refuse(.not_connected, "the alias is bound to no channel; connect it first");
        if (handle < raw.all_channels or handle > unbound) return c.refuse(.invalid_argument, "there is no such handle");
        if (bytes.len + with.len > limits.message) return c.tooLarge("message", bytes.len + with.len, limits.message);
        if (c.badHeaders(with)) |status| return status;
        const list = headers.decode(c.host.arena.allocator(), c.copy(with)) catch @panic("out of memory");
        const to = if (handle == raw.all_channels) c.host.channels else c.host.channels[@intCast(handle)..][0..1];
        if (c.tooMuch(to.len, bytes.len + with.len)) |status| return status;
        for (to) |alias| _ = c.append(&c.host.effects.sent, testing.Sent{ .channel = alias, .payload = c.copy(bytes), .headers = list });
        return @intCast(to.len);
    }

    fn badHeaders(c: Calls, with: []const u8) ?i32 {
        var rest = with;
        while (rest.len > 0) {
            const name = std.mem.findScalar(u8, rest, 0) orelse rest.len;
            const value = if (name < rest.len) std.mem.findScalar(u8, rest[name + 1 ..], 0) else null;
            if (name == 0 or value == null) return c.refuse(.invalid_argument, "the headers are malformed");
            if (std.ascii.startsWithIgnoreCase(rest, "terrarium-"))
                return c.refuse(.invalid_argument, "names of headers that begin with terrarium- are reserved for the host");
            rest = rest[name + value.? + 2 ..];
        }
        return null;
    }

    /// Refuses messages of one size that exceed a limit; null if they may be sent.
    fn tooMuch(c: Calls, count: usize, bytes: usize) ?i32 {
        const turn = &c.host.turn;
        if (bytes > limits.message) return c.tooLarge("message", bytes, limits.message);
        if (turn.sends + count > limits.sends) return c.limit("sends");
        if (turn.send_bytes + count * bytes > limits.send_bytes) return c.limit("send_bytes");
        turn.sends += count;
        turn.send_bytes += count * bytes;
        return null;
    }

    fn unknownCreature(c: Calls, name: []const u8) ?i32 {
        for (c.host.creatures) |known| if (std.mem.eql(u8, known, name)) return null;
        return c.refuse(.not_found, c.format("there is no creature {s} in this graph", .{name}));
    }

    pub fn sendTo(c: Calls, to: []const u8, bytes: []const u8) i32 {
        c.host.turn.calling = "send_to";
        if (c.closed(null) orelse c.unknownCreature(to) orelse c.tooMuch(1, bytes.len)) |status| return status;
        return c.append(&c.host.effects.sent, testing.Sent{ .to = c.copy(to), .payload = c.copy(bytes) });
    }

    pub fn request(c: Calls, to: []const u8, bytes: []const u8, deadline_ms: i64, tag: i64) i32 {
        c.host.turn.calling = "request";
        if (c.closed(.requests)) |status| return status;
        if (deadline_ms <= 0) return c.refuse(.invalid_argument, "a request needs a deadline");
        if (c.unknownCreature(to)) |status| return status;
        if (c.host.effects.requests.items.len >= limits.requests) return c.limit("requests");
        if (c.tooMuch(1, bytes.len)) |status| return status;
        return c.append(&c.host.effects.requests, testing.Request{ .to = c.copy(to), .payload = c.copy(bytes), .deadline_ms = deadline_ms, .tag = tag });
    }

    pub fn reply(c: Calls, bytes: []const u8) i32 {
        c.host.turn.calling = "reply";
        if (c.closed(.requests)) |status| return status;
        if (c.host.turn.kind != .request) return c.refuse(.denied, "the delivery is no request");
        if (!c.host.turn.reply_open) return c.refuse(.already_exists, "the request has a reply already");
        if (bytes.len > limits.message) return c.tooLarge("message", bytes.len, limits.message);
        c.host.turn.reply_open = false;
        c.host.effects.reply = c.copy(bytes);
        return 0;
    }

    pub fn output(c: Calls, bytes: []const u8) i32 {
        c.host.turn.calling = "output";
        if (c.closed(null)) |status| return status;
        if (c.host.turn.output_bytes + bytes.len > limits.output) return c.limit("output");
        const outputs = &c.host.effects.outputs;
        const former: []const u8 = if (c.host.turn.has_output) outputs.pop().? else "";
        c.host.turn.has_output = true;
        c.host.turn.output_bytes += bytes.len;
        return c.append(outputs, std.mem.concat(c.host.arena.allocator(), u8, &.{ former, bytes }) catch @panic("out of memory"));
    }

    fn badKey(c: Calls, key: []const u8) ?i32 {
        if (key.len > limits.state_key) return c.tooLarge("state_key", key.len, limits.state_key);
        if (key.len == 0) return c.refuse(.invalid_argument, "the key is empty");
        if (std.mem.findScalar(u8, key, 0) != null or !std.unicode.utf8ValidateSlice(key)) return c.refuse(.invalid_argument, "the key is not UTF-8 without NUL");
        return null;
    }

    pub fn stateGet(c: Calls, key: []const u8, out: []u8) i32 {
        c.host.turn.calling = "state_get";
        if (key.len <= limits.state_key) if (c.badKey(key)) |status| return status; // the state has no longer ones
        return c.result(c.host.effects.state.get(key) orelse return c.refuse(.not_found, "the state has no such key"), out);
    }

    /// Counts the keys that the turn has written.
    fn tooManyWrites(c: Calls, key: []const u8) ?i32 {
        const written = &c.host.turn.written;
        if (written.contains(key)) return null;
        if (written.count() >= limits.state_writes) return c.limit("state_writes");
        written.put(c.host.arena.allocator(), c.copy(key), {}) catch @panic("out of memory");
        return null;
    }

    pub fn stateSet(c: Calls, key: []const u8, value: []const u8) i32 {
        c.host.turn.calling = "state_set";
        if (c.closed(null) orelse c.badKey(key)) |status| return status;
        if (value.len > limits.state_value) return c.tooLarge("state_value", value.len, limits.state_value);
        var total = key.len + value.len + 32;
        const state = &c.host.effects.state;
        for (state.keys(), state.values()) |k, v| if (!std.mem.eql(u8, k, key)) {
            total += k.len + v.len + 32;
        };
        if (total > limits.state) return c.limit("state");
        if (c.tooManyWrites(key)) |status| return status;
        state.put(c.host.arena.allocator(), c.copy(key), c.copy(value)) catch @panic("out of memory");
        return 0;
    }

    pub fn stateDelete(c: Calls, key: []const u8) i32 {
        c.host.turn.calling = "state_delete";
        if (c.closed(null) orelse c.badKey(key)) |status| return status;
        if (!c.host.effects.state.contains(key)) return 0; // which is no write
        if (c.tooManyWrites(key)) |status| return status;
        return @intFromBool(c.host.effects.state.orderedRemove(key));
    }

    pub fn stateList(c: Calls, prefix: []const u8, out: []u8) i32 {
        c.host.turn.calling = "state_list";
        const a = c.host.arena.allocator();
        var keys: std.ArrayList([]const u8) = .empty;
        for (c.host.effects.state.keys()) |key| if (std.mem.startsWith(u8, key, prefix)) {
            _ = c.append(&keys, key);
        };
        std.mem.sort([]const u8, keys.items, {}, before);
        var list: std.ArrayList(u8) = .empty;
        for (keys.items) |key| list.print(a, "{s}\x00", .{key}) catch @panic("out of memory");
        return c.result(list.items, out);
    }

    fn before(_: void, a: []const u8, b: []const u8) bool {
        return std.mem.lessThan(u8, a, b);
    }

    pub fn timerSet(c: Calls, name: []const u8, delay_ms: i64, period_ms: i64, bytes: []const u8) i32 {
        c.host.turn.calling = "timer_set";
        if (c.closed(.timers)) |status| return status;
        if (delay_ms < 0 or period_ms < 0) return c.refuse(.invalid_argument, "a time is negative");
        if (c.badKey(name)) |status| return status;
        if (bytes.len > limits.message) return c.tooLarge("message", bytes.len, limits.message);
        const timers = &c.host.effects.timers;
        if (timers.count() >= limits.timers and !timers.contains(name)) return c.limit("timers");
        var total = name.len + bytes.len;
        for (timers.keys(), timers.values()) |other, timer| if (!std.mem.eql(u8, other, name)) {
            total += other.len + timer.payload.len;
        };
        if (total > limits.timer_bytes) return c.limit("timer_bytes");
        timers.put(c.host.arena.allocator(), c.copy(name), .{
            .due_ms = c.host.time_ms +| delay_ms,
            .period_ms = period_ms,
            .payload = c.copy(bytes),
        }) catch @panic("out of memory");
        return 0;
    }

    pub fn timerCancel(c: Calls, name: []const u8) i32 {
        c.host.turn.calling = "timer_cancel";
        if (c.closed(.timers)) |status| return status;
        return @intFromBool(c.host.effects.timers.orderedRemove(name));
    }

    pub fn tool(c: Calls, name: []const u8, args: []const u8) i32 {
        c.host.turn.calling = "tool";
        if (c.closed(.tools)) |status| return status;
        if (name.len + args.len > limits.message) return c.tooLarge("message", name.len + args.len, limits.message);
        if (c.host.turn.tools >= limits.tools) return c.limit("tools");
        c.host.turn.tools += 1;
        const answer = c.host.tools orelse return c.refuse(.not_found, c.format("there is no tool {s}", .{name}));
        const passed = c.copy(if (args.len == 0) "{}" else args);
        switch (answer(c.host, name, .parse(passed))) {
            .refused => |r| return c.refuse(r.code, r.text),
            .ok => |text| {
                _ = c.append(&c.host.effects.tool_calls, testing.ToolCall{ .name = c.copy(name), .args = passed });
                return c.result(text, &.{});
            },
        }
    }

    pub fn http(c: Calls, head: []const u8, body: []const u8, tag: i64) i32 {
        c.host.turn.calling = "http";
        if (c.closed(.http)) |status| return status;
        return c.append(&c.host.effects.https, testing.Http{ .head = c.copy(head), .body = c.copy(body), .tag = tag });
    }

    pub fn log(c: Calls, level: i32, text: []const u8) i32 {
        c.host.turn.calling = "log";
        const l = std.enums.fromInt(raw.Level, level) orelse return c.refuse(.invalid_argument, "there is no such level");
        const turn = &c.host.turn;
        if (c.host.logs.items.len - turn.first_log >= limits.log_lines) return c.limit("log_lines");
        const room = limits.log_bytes - turn.log_bytes;
        if (text.len > room and room < ellipsis.len) return c.limit("log_bytes");
        turn.log_bytes += @min(text.len, room);
        return c.append(&c.host.logs, testing.Log{ .level = l, .text = if (text.len > room) c.shortened(text, room) else c.copy(text) });
    }

    const ellipsis = "…"; // ends a log line that was cut

    fn shortened(c: Calls, text: []const u8, room: usize) []const u8 {
        var end = room - ellipsis.len;
        while (end > 0 and text[end] & 0xc0 == 0x80) end -= 1;
        return c.format("{s}" ++ ellipsis, .{text[0..end]});
    }

    pub fn now(c: Calls) i64 {
        return c.host.time_ms * std.time.ns_per_ms;
    }

    pub fn random(c: Calls, out: []u8) i32 {
        var source: std.Random.DefaultPrng = .init(std.hash.Wyhash.hash(c.host.turn.drawn, c.host.turn.sources.message_id));
        source.random().bytes(out);
        c.host.turn.drawn += 1;
        return 0;
    }

    pub fn fuelLeft(c: Calls) i64 {
        return if (c.host.features.contains(.fuel)) c.host.fuel else -1;
    }
};
