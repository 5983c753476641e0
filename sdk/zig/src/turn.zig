const std = @import("std");
const raw = @import("raw.zig");
const json_ = @import("json.zig");
const headers_ = @import("headers.zig");
const config_ = @import("config.zig");
const memory = @import("memory.zig");
const is_wasm = @import("creature.zig").is_wasm;
const Allocator = std.mem.Allocator;
const Header = headers_.Header;

/// The host of a turn: in a module the imports, in a test the fake.
pub const Host = if (is_wasm) raw.Host else @import("calls.zig").Calls;

/// One call into a creature: its input and its effects. Everything that its methods return
/// is in the memory of the turn, which is freed when the handler has returned.
///
/// If the host refuses a call, the turn keeps the host's text. When the handler returns the
/// error, the text is logged, and the code is the result of the turn.
pub const Turn = struct {
    /// The memory of the turn. Nothing in it has to be freed.
    allocator: Allocator,
    /// Why the creature is called.
    kind: raw.Kind,
    host: Host,
    size: usize,
    bytes: ?[]u8 = null, // the payload, after it has been read
    failure: Failure = .{},

    /// The errors of the methods: the codes of the contract, and exhausted memory.
    pub const Error = raw.Error || Allocator.Error;

    const Failure = struct {
        status: i32 = 0,
        text: []const u8 = "",
    };

    pub fn init(host: Host, allocator: Allocator, kind: raw.Kind, size: usize) Turn {
        return .{ .host = host, .allocator = allocator, .kind = kind, .size = size };
    }

    /// Logs why a turn failed, and returns its status.
    pub fn finish(t: *Turn, outcome: anytype) i32 {
        const err = if (@typeInfo(@TypeOf(outcome)) == .error_union) (if (outcome) |_| return 0 else |e| e) else return 0;
        const code = raw.codeOf(err);
        const status = @backingInt(code orelse .failed);
        t.log(.err, if (code == null) ownName(err) else if (t.failure.status == status) t.failure.text else codeName(code.?));
        return status;
    }

    /// The text of the last error: of the call that the host refused, or of `fail`.
    pub fn failureText(t: *const Turn) []const u8 {
        return t.failure.text;
    }

    /// Fails the turn with a text: `return t.fail("it went wrong");`
    pub fn fail(t: *Turn, message: []const u8) error{Failed} {
        t.failure = .{ .status = @backingInt(raw.Code.failed), .text = message };
        return error.Failed;
    }

    /// Fails the turn with a code and a text:
    /// `return t.failWith(.denied, "{s} may not", .{name});`
    pub fn failWith(t: *Turn, code: raw.Code, comptime format: []const u8, args: anytype) Error {
        const message = try t.print(format, args);
        t.failure = .{ .status = @backingInt(code), .text = message };
        return raw.errorOf(code);
    }

    /// Ends the turn with a trap, for what must not happen. The log has the text and the
    /// place in the source: `t.panic(@src(), "out of cheese");`
    pub fn panic(t: *Turn, comptime place: std.builtin.SourceLocation, message: []const u8) noreturn {
        @branchHint(.cold);
        const at = comptime std.fmt.comptimePrint(", at {s}:{d}", .{ place.file, place.line });
        @panic(std.mem.concat(t.allocator, u8, &.{ message, at }) catch message);
    }

    /// Formats a text in the memory of the turn.
    pub fn print(t: *Turn, comptime format: []const u8, args: anytype) Error![]const u8 {
        return std.fmt.allocPrint(t.allocator, format, args);
    }

    /// Memory without the indirect call of an allocator, for the buffers of every turn.
    fn room(t: *Turn, size: usize) Allocator.Error![]u8 {
        if (!is_wasm) return t.allocator.alloc(u8, size);
        const start = memory.bytes(size) orelse return error.OutOfMemory;
        return start[0..size];
    }

    fn check(t: *Turn, status: i32) Error!usize {
        return if (status >= 0) @intCast(status) else t.refused(status);
    }

    fn refused(t: *Turn, status: i32) Error {
        @branchHint(.cold);
        // A code of a later version counts as failed.
        const code: raw.Code = @fromBackingInt(if (status < -raw.known_codes) @backingInt(raw.Code.failed) else status);
        t.failure = .{ .status = @backingInt(code), .text = try t.source(.failure) };
        return raw.errorOf(code);
    }

    /// The complete content of a source; empty if the host does not have it.
    pub fn source(t: *Turn, which: raw.Source) Error![]u8 {
        const size = t.host.size(@backingInt(which));
        return t.read(which, if (size < 0) 0 else @intCast(size));
    }

    fn read(t: *Turn, which: raw.Source, size: usize) Error![]u8 {
        const buffer = try t.room(size);
        _ = t.host.read(@backingInt(which), 0, buffer); // a source has the size that the host returned
        return buffer;
    }

    fn result(t: *Turn, status: i32) Error![]u8 {
        return t.read(.result, try t.check(status));
    }

    /// Like result, with null instead of error.NotFound.
    fn resultOrNull(t: *Turn, status: i32) Error!?[]u8 {
        if (status == @backingInt(raw.Code.not_found)) return null;
        return try t.result(status);
    }

    // The delivery

    /// The bytes of the delivery, which need not be UTF-8. The handler may change them.
    pub fn payload(t: *Turn) Error![]u8 {
        if (t.bytes == null) t.bytes = try t.read(.payload, t.size);
        return t.bytes.?;
    }

    /// The bytes of the delivery, which must be UTF-8.
    pub fn text(t: *Turn) Error![]const u8 {
        const bytes = try t.payload();
        if (std.unicode.utf8ValidateSlice(bytes)) return bytes;
        return t.failText(error.InvalidArgument, "the payload is not UTF-8");
    }

    /// Fails the turn with a text that needs no format, which makes small modules smaller.
    pub fn failText(t: *Turn, comptime err: raw.Error, message: []const u8) raw.Error {
        t.failure = .{ .status = @backingInt(raw.codeOf(err).?), .text = message };
        return err;
    }

    /// The listen alias of the message's channel, or the creature's own name for a direct
    /// message.
    pub fn channel(t: *Turn) Error![]const u8 {
        return t.source(.channel);
    }

    /// The sender's name; empty for a message from outside.
    pub fn sender(t: *Turn) Error![]const u8 {
        return t.source(.sender);
    }

    /// The id of the message, which is unique everywhere.
    pub fn messageId(t: *Turn) Error![]const u8 {
        return t.source(.message_id);
    }

    /// The creature's own name.
    pub fn self(t: *Turn) Error![]const u8 {
        return t.source(.self);
    }

    /// The headers of the message, in their order.
    pub fn headers(t: *Turn) Error![]const Header {
        return headers_.decode(t.allocator, try t.source(.headers));
    }

    /// The value of a header, or null.
    pub fn header(t: *Turn, name: []const u8) Error!?[]const u8 {
        for (try t.headers()) |h| if (std.mem.eql(u8, h.name, name)) return h.value;
        return null;
    }

    /// The details of this kind of delivery.
    pub fn detail(t: *Turn) Error!json_.Value {
        return .parse(try t.source(.detail));
    }

    /// Whether the message was sent directly to the creature.
    pub fn direct(t: *Turn) Error!bool {
        const v = (try t.detail()).member("direct") orelse return false;
        return v.boolean() orelse false;
    }

    /// The number of the attempt to handle the delivery, from 1.
    pub fn attempt(t: *Turn) Error!i64 {
        const v = (try t.detail()).member("attempt") orelse return 1;
        return v.whole() orelse 1;
    }

    fn detailText(t: *Turn, name: []const u8) Error![]const u8 {
        const v = (try t.detail()).member(name) orelse return "";
        return try v.text(t.allocator) orelse "";
    }

    /// The name of the timer that came due; empty for another kind of delivery.
    pub fn timerName(t: *Turn) Error![]const u8 {
        return t.detailText("name");
    }

    /// The tag of the request that this result belongs to; 0 for another kind of delivery.
    pub fn tag(t: *Turn) Error!i64 {
        return std.fmt.parseInt(i64, try t.detailText("tag"), 10) catch 0;
    }

    /// `ok`, or the name of the error with which the request ended.
    pub fn resultCode(t: *Turn) Error![]const u8 {
        return t.detailText("code");
    }

    // The configuration

    /// An attribute: a text as it is, anything else as JSON; null if it is missing.
    pub fn config(t: *Turn, key: []const u8) Error!?[]const u8 {
        return t.resultOrNull(t.host.config(key, &.{}));
    }

    /// The whole configuration, an object.
    pub fn configJson(t: *Turn) Error!json_.Value {
        return .parse(try t.source(.config));
    }

    pub const configText = config_.text;
    pub const configWhole = config_.whole;
    pub const configBool = config_.boolean;
    pub const configKnows = config_.knows;

    // The state

    /// A value of the state, or null.
    pub fn stateGet(t: *Turn, key: []const u8) Error!?[]u8 {
        return t.resultOrNull(t.host.stateGet(key, &.{}));
    }

    /// Writes a value of the state. A key is UTF-8, not empty and without NUL.
    pub fn stateSet(t: *Turn, key: []const u8, value: []const u8) Error!void {
        _ = try t.check(t.host.stateSet(key, value));
    }

    /// Deletes a value of the state, and returns whether there was one.
    pub fn stateDelete(t: *Turn, key: []const u8) Error!bool {
        return try t.check(t.host.stateDelete(key)) > 0;
    }

    /// The keys with a prefix, sorted.
    pub fn stateList(t: *Turn, prefix: []const u8) Error![]const []const u8 {
        const list = try t.result(t.host.stateList(prefix, &.{}));
        var keys: std.ArrayList([]const u8) = .empty;
        var rest = std.mem.splitScalar(u8, list, 0);
        while (rest.next()) |key| if (key.len > 0) try keys.append(t.allocator, key);
        return keys.items;
    }

    /// A decimal number of the state; 0 if it is missing.
    pub fn stateWhole(t: *Turn, key: []const u8) Error!i64 {
        const value = try t.stateGet(key) orelse return 0;
        return (json_.Value{ .raw = value }).whole() orelse
            t.failText(error.InvalidArgument, try t.print("state {s}: it is not a whole number", .{key}));
    }

    /// Writes a number to the state, in decimal.
    pub fn stateSetWhole(t: *Turn, key: []const u8, value: i64) Error!void {
        try t.stateSet(key, try t.print("{d}", .{value}));
    }

    // Sending

    /// Sends a message on the channel that the creature knows as alias.
    pub fn send(t: *Turn, alias: []const u8, bytes: []const u8, with: []const Header) Error!void {
        const handle = try t.check(t.host.channel(alias));
        try t.sendOn(@intCast(handle), bytes, with);
    }

    /// Sends a message on every channel that the creature may send on.
    pub fn sendAll(t: *Turn, bytes: []const u8, with: []const Header) Error!void {
        try t.sendOn(raw.all_channels, bytes, with);
    }

    fn sendOn(t: *Turn, handle: i32, bytes: []const u8, with: []const Header) Error!void {
        _ = try t.check(t.host.send(handle, bytes, try headers_.encode(t.allocator, with)));
    }

    /// Sends a direct message to one creature of the graph, by id or name.
    pub fn sendTo(t: *Turn, creature: []const u8, bytes: []const u8) Error!void {
        _ = try t.check(t.host.sendTo(creature, bytes));
    }

    /// Appends to the output of the turn.
    pub fn output(t: *Turn, bytes: []const u8) Error!void {
        _ = try t.check(t.host.output(bytes));
    }

    /// Sends a direct message and requests a reply, which arrives as a delivery of the kind
    /// `result` with the same tag.
    pub fn request(t: *Turn, creature: []const u8, bytes: []const u8, deadline_ms: i64, with_tag: i64) Error!void {
        _ = try t.check(t.host.request(creature, bytes, deadline_ms, with_tag));
    }

    /// Answers the request that is being handled.
    pub fn reply(t: *Turn, bytes: []const u8) Error!void {
        _ = try t.check(t.host.reply(bytes));
    }

    /// Sends an HTTP request after the turn has taken effect. head is JSON with method, url
    /// and headers. The response arrives as a delivery of the kind `result` with the tag.
    pub fn http(t: *Turn, head: []const u8, body: []const u8, with_tag: i64) Error!void {
        _ = try t.check(t.host.http(head, body, with_tag));
    }

    // Timers, tools, awareness

    /// Sets or replaces the timer of that name; a period of 0 means once. bytes are the
    /// payload of the delivery of the kind `timer`.
    pub fn setTimer(t: *Turn, name: []const u8, delay_ms: i64, period_ms: i64, bytes: []const u8) Error!void {
        _ = try t.check(t.host.timerSet(name, delay_ms, period_ms, bytes));
    }

    /// Cancels a timer, and returns whether it was set.
    pub fn cancelTimer(t: *Turn, name: []const u8) Error!bool {
        return try t.check(t.host.timerCancel(name)) > 0;
    }

    /// Calls a group tool with JSON arguments. `terrarium.tools` has a typed function for each.
    pub fn tool(t: *Turn, name: []const u8, args: []const u8) Error!json_.Value {
        return .{ .raw = try t.result(t.host.tool(name, args)) };
    }

    /// Writes a value of Zig as JSON; see `terrarium.json.write`.
    pub fn json(t: *Turn, value: anytype) Error!json_.Value {
        return json_.write(t.allocator, value);
    }

    /// The awareness document: what the creature can know about itself and its surroundings.
    pub fn awareness(t: *Turn) Error!json_.Value {
        return .parse(try t.source(.awareness_json));
    }

    /// The same document as Markdown.
    pub fn awarenessMarkdown(t: *Turn) Error![]const u8 {
        return t.source(.awareness_markdown);
    }

    /// The document's revision, which rises whenever the document changes; 0 if there is none.
    pub fn awarenessRevision(t: *Turn) Error!u64 {
        return std.fmt.parseInt(u64, try t.source(.awareness_revision), 10) catch 0;
    }

    // Others

    /// Writes a log line. Lines beyond the limits of the turn are dropped.
    pub fn log(t: *Turn, level: raw.Level, line: []const u8) void {
        _ = t.host.log(@backingInt(level), line);
    }

    /// Nanoseconds since 1970: the delivery's time, unless the creature was granted the real
    /// clock.
    pub fn now(t: *Turn) i64 {
        return t.host.now();
    }

    /// Fills buffer with bytes that are the same when the turn is run again, unless the
    /// creature was granted real randomness.
    pub fn random(t: *Turn, buffer: []u8) void {
        _ = t.host.random(buffer);
    }

    /// The fuel left in the turn, or null if fuel is not counted.
    pub fn fuelLeft(t: *Turn) ?i64 {
        const left = t.host.fuelLeft();
        return if (left < 0) null else left;
    }

    /// Whether the host has an optional part of the contract.
    pub fn hasFeature(t: *Turn, which: raw.Feature) bool {
        return t.host.feature(@backingInt(which)) > 0;
    }
};

/// The name of an error that is not of the contract. Only such errors get a name in the
/// module.
fn ownName(err: anytype) []const u8 {
    const names = @typeInfo(@TypeOf(err)).error_set.error_names orelse return @errorName(err);
    inline for (names) |name| {
        const own = @field(anyerror, name);
        if (comptime raw.codeOf(own) == null) if (err == own) return name;
    }
    unreachable;
}

/// The stable name of a code, for example "not_found".
pub fn codeName(code: raw.Code) []const u8 {
    var left: i32 = @backingInt(code);
    var start: usize = 0;
    for (raw.code_names, 0..) |byte, i| if (byte == 0) {
        if (left == 0) return raw.code_names[start..i];
        left += 1;
        start = i + 1;
    };
    return "unknown";
}
