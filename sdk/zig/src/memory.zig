//! The memory of an instance: an arena behind the static data. It grows to what the largest
//! turn needed and no further.

const std = @import("std");
const Alignment = std.mem.Alignment;

extern var __heap_base: u8; // set by the linker

var base: usize = 0; // where the memory of a turn starts; 0 until keep
var top: usize = 0; // where the next allocation starts

/// Frees everything that was allocated since `keep`.
pub fn reset() void {
    top = if (base == 0) @intFromPtr(&__heap_base) else base;
}

/// Keeps what has been allocated for the life of the instance.
pub fn keep() void {
    base = top;
}

pub const allocator: std.mem.Allocator = .{
    .ptr = undefined,
    .vtable = &.{ .alloc = alloc, .resize = resize, .remap = remap, .free = free },
};

inline fn extend(end: usize) bool {
    const need = end / std.wasm.page_size + 1; // in pages
    const have = @wasmMemorySize(0);
    if (need > have and @wasmMemoryGrow(0, need - have) < 0) return false;
    top = end;
    return true;
}

/// Allocates len bytes, or returns null if memory is exhausted.
pub inline fn bytes(len: usize) ?[*]u8 {
    const start = top;
    const end = @addWithOverflow(start, len);
    if (end[1] != 0 or !extend(end[0])) return null;
    return @ptrFromInt(start);
}

fn alloc(_: *anyopaque, len: usize, alignment: Alignment, _: usize) ?[*]u8 {
    const before = top;
    top = alignment.forward(top);
    return bytes(len) orelse {
        top = before;
        return null;
    };
}

fn isLast(memory: []u8) bool {
    return @intFromPtr(memory.ptr) + memory.len == top;
}

fn resize(_: *anyopaque, memory: []u8, _: Alignment, len: usize, _: usize) bool {
    if (!isLast(memory)) return len <= memory.len;
    const end = @addWithOverflow(@intFromPtr(memory.ptr), len);
    return end[1] == 0 and extend(end[0]);
}

fn remap(context: *anyopaque, memory: []u8, alignment: Alignment, len: usize, address: usize) ?[*]u8 {
    return if (resize(context, memory, alignment, len, address)) memory.ptr else null;
}

fn free(_: *anyopaque, memory: []u8, _: Alignment, _: usize) void {
    if (isLast(memory)) top = @intFromPtr(memory.ptr);
}
