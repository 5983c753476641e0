//! A small reader and writer of JSON. std.json has more, and makes a module 40 KB larger.

const std = @import("std");
const Allocator = std.mem.Allocator;
const Bytes = std.ArrayList(u8);

/// Bytes that are written as a text, or as an object with base64 if they are not UTF-8.
pub const Payload = struct { bytes: []const u8 };

/// A value of a document. The reader does not validate: where a document is malformed,
/// members and elements are missing.
pub const Value = struct {
    raw: []const u8,

    /// The first value of a document, without the space around it.
    pub fn parse(document: []const u8) Value {
        var reader: Reader = .{ .bytes = document };
        return .{ .raw = reader.value() orelse "" };
    }

    /// The member of an object with that name, or null.
    pub fn member(v: Value, name: []const u8) ?Value {
        var all = v.members();
        while (all.next()) |m| if (m.name.equals(name)) return m.value;
        return null;
    }

    /// The member that a sequence of names leads to, or null.
    pub fn path(v: Value, names: []const []const u8) ?Value {
        var at = v;
        for (names) |name| at = at.member(name) orelse return null;
        return at;
    }

    /// The members of an object; none for any other value.
    pub fn members(v: Value) Members {
        return .{ .reader = .init(v.raw, '{') };
    }

    /// The elements of a list; none for any other value.
    pub fn items(v: Value) Items {
        return .{ .reader = .init(v.raw, '[') };
    }

    /// The content of a text, or null for any other value.
    pub fn text(v: Value, allocator: Allocator) error{OutOfMemory}!?[]const u8 {
        if (v.raw.len < 2 or v.raw[0] != '"') return null;
        const content = v.raw[1 .. v.raw.len - 1];
        if (std.mem.findScalar(u8, content, '\\') == null) return content;
        return try unescape(allocator, content);
    }

    /// A whole number without fraction and exponent, or null for any other value.
    pub fn whole(v: Value) ?i64 {
        if (v.raw.len == 0 or v.raw[0] == '+' or std.mem.findScalar(u8, v.raw, '_') != null) return null;
        return std.fmt.parseInt(i64, v.raw, 10) catch null;
    }

    /// Whether the value is true or false, or null for any other value.
    pub fn boolean(v: Value) ?bool {
        if (std.mem.eql(u8, v.raw, "true")) return true;
        return if (std.mem.eql(u8, v.raw, "false")) false else null;
    }

    /// Whether the value is this text. Texts with escapes are equal to none.
    pub fn equals(v: Value, content: []const u8) bool {
        return v.raw.len == content.len + 2 and v.raw[0] == '"' and std.mem.eql(u8, v.raw[1..][0..content.len], content);
    }
};

pub const Member = struct { name: Value, value: Value };

pub const Members = struct {
    reader: Reader,

    pub fn next(m: *Members) ?Member {
        const name = m.reader.value() orelse return null;
        if (name[0] != '"' or !m.reader.skip(':')) return null;
        const value = m.reader.value() orelse return null;
        _ = m.reader.skip(',');
        return .{ .name = .{ .raw = name }, .value = .{ .raw = value } };
    }
};

pub const Items = struct {
    reader: Reader,

    pub fn next(i: *Items) ?Value {
        const value = i.reader.value() orelse return null;
        _ = i.reader.skip(',');
        return .{ .raw = value };
    }
};

const Reader = struct {
    bytes: []const u8,
    at: usize = 0,

    /// Reads behind the opening bracket, or nothing if there is another one.
    fn init(bytes: []const u8, open: u8) Reader {
        var r: Reader = .{ .bytes = bytes };
        if (!r.skip(open)) r.at = bytes.len;
        return r;
    }

    fn skip(r: *Reader, byte: u8) bool {
        while (r.at < r.bytes.len) : (r.at += 1) switch (r.bytes[r.at]) {
            ' ', '\t', '\r', '\n' => {},
            else => |b| {
                if (b == byte) r.at += 1;
                return b == byte;
            },
        };
        return false;
    }

    fn string(r: *Reader) bool {
        while (r.at < r.bytes.len) : (r.at += 1) switch (r.bytes[r.at]) {
            '\\' => r.at += 1,
            '"' => {
                r.at += 1;
                return true;
            },
            else => {},
        };
        return false;
    }

    /// The next value; null at a closing bracket and at the end.
    fn value(r: *Reader) ?[]const u8 {
        _ = r.skip(0);
        const start = r.at;
        var depth: usize = 0;
        while (r.at < r.bytes.len) {
            const byte = r.bytes[r.at];
            switch (byte) {
                ']', '}' => {
                    if (depth == 0) break;
                    depth -= 1;
                },
                '[', '{' => depth += 1,
                ',', ':', ' ', '\t', '\r', '\n' => if (depth == 0) break,
                else => {},
            }
            r.at += 1;
            if (byte == '"' and !r.string()) return null;
            if (depth == 0 and (byte == '"' or byte == ']' or byte == '}')) break;
        }
        return if (depth == 0 and r.at > start) r.bytes[start..r.at] else null;
    }
};

fn unescape(allocator: Allocator, content: []const u8) error{OutOfMemory}![]const u8 {
    var out: Bytes = try .initCapacity(allocator, content.len);
    var i: usize = 0;
    while (i < content.len) : (i += 1) {
        if (content[i] != '\\' or i + 1 == content.len) {
            out.appendAssumeCapacity(content[i]);
            continue;
        }
        i += 1;
        switch (content[i]) {
            'b' => out.appendAssumeCapacity(8),
            'f' => out.appendAssumeCapacity(12),
            'n' => out.appendAssumeCapacity('\n'),
            'r' => out.appendAssumeCapacity('\r'),
            't' => out.appendAssumeCapacity('\t'),
            'u' => {
                var point: u21 = unit(content, i + 1) orelse 0xFFFD;
                i += 4;
                if (point & 0xFC00 == 0xD800) {
                    const low = if (std.mem.startsWith(u8, content[@min(i + 1, content.len)..], "\\u")) unit(content, i + 3) else null;
                    if (low != null and low.? & 0xFC00 == 0xDC00) {
                        point = 0x10000 + (((point & 0x3FF) << 10) | (low.? & 0x3FF));
                        i += 6;
                    }
                }
                var bytes: [4]u8 = undefined;
                const n = std.unicode.utf8Encode(point, &bytes) catch std.unicode.utf8Encode(0xFFFD, &bytes) catch unreachable;
                out.appendSliceAssumeCapacity(bytes[0..n]);
            },
            else => |c| out.appendAssumeCapacity(c),
        }
    }
    return out.items;
}

fn unit(content: []const u8, at: usize) ?u21 {
    if (at + 4 > content.len) return null;
    return std.fmt.parseInt(u16, content[at..][0..4], 16) catch null;
}

/// Writes a value of Zig: texts, numbers, booleans, enums, lists, structs as objects, `Value`
/// and `Payload`. A field of a struct that is null is left out.
pub fn write(allocator: Allocator, value: anytype) error{OutOfMemory}!Value {
    var out: Bytes = .empty;
    try put(allocator, &out, value);
    return .{ .raw = out.items };
}

fn put(a: Allocator, out: *Bytes, value: anytype) error{OutOfMemory}!void {
    const T = @TypeOf(value);
    if (T == Value) return out.appendSlice(a, value.raw);
    if (T == Payload) return putPayload(a, out, value.bytes);
    switch (@typeInfo(T)) {
        .bool => try out.appendSlice(a, if (value) "true" else "false"),
        .int, .comptime_int => try out.print(a, "{d}", .{value}),
        .@"enum", .enum_literal => try putText(a, out, @tagName(value)),
        .@"struct" => |info| {
            if (info.is_tuple) return putTuple(a, out, value);
            try putStruct(a, out, value);
        },
        .pointer => |info| {
            if (info.size == .slice) {
                return if (info.child == u8) putText(a, out, value) else putList(a, out, value);
            }
            try put(a, out, if (@typeInfo(info.child) == .array) @as([]const std.meta.Elem(T), value) else value.*);
        },
        else => @compileError("json.write cannot write a " ++ @typeName(T)),
    }
}

fn putList(a: Allocator, out: *Bytes, list: anytype) error{OutOfMemory}!void {
    try out.append(a, '[');
    for (list, 0..) |item, i| {
        if (i > 0) try out.append(a, ',');
        try put(a, out, item);
    }
    try out.append(a, ']');
}

fn putTuple(a: Allocator, out: *Bytes, tuple: anytype) error{OutOfMemory}!void {
    try out.append(a, '[');
    inline for (tuple, 0..) |item, i| {
        if (i > 0) try out.append(a, ',');
        try put(a, out, item);
    }
    try out.append(a, ']');
}

fn putStruct(a: Allocator, out: *Bytes, value: anytype) error{OutOfMemory}!void {
    const info = @typeInfo(@TypeOf(value)).@"struct";
    try out.append(a, '{');
    inline for (info.field_names, info.field_types) |name, F| {
        const field = @field(value, name);
        if (@typeInfo(F) == .optional) {
            if (field) |present| try putMember(a, out, name, present);
        } else {
            try putMember(a, out, name, field);
        }
    }
    try out.append(a, '}');
}

fn putMember(a: Allocator, out: *Bytes, name: []const u8, value: anytype) error{OutOfMemory}!void {
    if (out.items[out.items.len - 1] != '{') try out.append(a, ',');
    try putText(a, out, name);
    try out.append(a, ':');
    try put(a, out, value);
}

fn putPayload(a: Allocator, out: *Bytes, bytes: []const u8) error{OutOfMemory}!void {
    if (std.unicode.utf8ValidateSlice(bytes)) return putText(a, out, bytes);
    const encoder = std.base64.standard.Encoder;
    const text = try a.alloc(u8, encoder.calcSize(bytes.len));
    try put(a, out, .{ .base64 = encoder.encode(text, bytes) });
}

/// Writes a text with the escapes that JSON requires.
pub fn putText(a: Allocator, out: *Bytes, text: []const u8) error{OutOfMemory}!void {
    try out.ensureUnusedCapacity(a, text.len + 2);
    out.appendAssumeCapacity('"');
    for (text) |c| switch (c) {
        '"', '\\' => try out.appendSlice(a, &.{ '\\', c }),
        0...31 => try out.print(a, "\\u{x:0>4}", .{c}),
        else => try out.append(a, c),
    };
    try out.append(a, '"');
}

test "reading" {
    const expectEqualStrings = std.testing.expectEqualStrings;
    var arena: std.heap.ArenaAllocator = .init(std.testing.allocator);
    defer arena.deinit();
    const a = arena.allocator();
    const v = Value.parse(" {\"a\" : [1, -2 ,{\"]\":\"}\"}], \"t\":\"x\\n\\u00e4\\ud83d\\ude00\\ud800\", \"yes\":true, \"n\":12} ");
    var list = v.member("a").?.items();
    try std.testing.expectEqual(1, list.next().?.whole().?);
    try std.testing.expectEqual(-2, list.next().?.whole().?);
    try expectEqualStrings("}", (try list.next().?.member("]").?.text(a)).?);
    try std.testing.expectEqual(null, list.next());
    try expectEqualStrings("x\n\u{e4}\u{1F600}\u{FFFD}", (try v.member("t").?.text(a)).?);
    try std.testing.expectEqual(true, v.member("yes").?.boolean().?);
    try std.testing.expectEqual(12, v.member("n").?.whole().?);
    try std.testing.expectEqual(null, v.member("b"));
    try std.testing.expectEqual(null, v.member("a").?.whole());
}

test "malformed documents end early" {
    for ([_][]const u8{ "", "{", "{\"a", "{\"a\"", "{\"a\":", "{\"a\":[", "{\"a\":\"\\", "}", "{,", "{:1}", "nul", "{\"a\":]}" }) |document| {
        try std.testing.expectEqual(null, Value.parse(document).member("a"));
    }
}

test "writing" {
    var arena: std.heap.ArenaAllocator = .init(std.testing.allocator);
    defer arena.deinit();
    const v = try write(arena.allocator(), .{
        .text = @as([]const u8, "a\"\\\n\u{e4}"),
        .none = @as(?u8, null),
        .list = .{ 1, true, "x" },
        .payload = Payload{ .bytes = "\xff" },
        .raw = Value{ .raw = "{}" },
        .which = .first,
    });
    try std.testing.expectEqualStrings(
        \\{"text":"a\"\\\u000aä","list":[1,true,"x"],"payload":{"base64":"/w=="},"raw":{},"which":"first"}
    , v.raw);
}
