//! The headers of messages: name NUL value NUL for each.

const std = @import("std");

/// One header of a message. A name is not empty, and neither name nor value contains NUL.
pub const Header = struct {
    name: []const u8,
    value: []const u8,
};

/// Writes headers in the form of the contract.
pub fn encode(allocator: std.mem.Allocator, headers: []const Header) error{OutOfMemory}![]const u8 {
    if (headers.len == 0) return "";
    var size: usize = 0;
    for (headers) |h| size += h.name.len + h.value.len + 2;
    const bytes = try allocator.alloc(u8, size);
    var at: usize = 0;
    for (headers) |h| for ([_][]const u8{ h.name, h.value }) |part| {
        @memcpy(bytes[at..][0..part.len], part);
        bytes[at + part.len] = 0;
        at += part.len + 1;
    };
    return bytes;
}

/// Reads headers in the form of the contract. They refer to bytes.
pub fn decode(allocator: std.mem.Allocator, bytes: []const u8) error{OutOfMemory}![]const Header {
    var list: std.ArrayList(Header) = .empty;
    var parts = std.mem.splitScalar(u8, bytes, 0);
    while (parts.next()) |name| {
        const value = parts.next() orelse break;
        if (name.len > 0) try list.append(allocator, .{ .name = name, .value = value });
    }
    return list.items;
}
