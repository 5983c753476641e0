//! What a module exports.

const std = @import("std");
const builtin = @import("builtin");
const raw = @import("raw.zig");
const memory = @import("memory.zig");
const Turn = @import("turn.zig").Turn;

pub const is_wasm = builtin.cpu.arch.isWasm();

/// Declares the creature of a module, and exports what the contract requires:
///
///     pub const creature = terrarium.Creature(.{ .handle = handle });
///
/// The options are
///
/// - `handle`: `fn (*Turn) !void`, called for every delivery. It returns without an error for
///   a kind that it does not know.
/// - `init`: `fn (*Turn) !void`, called once for every instance, before the first delivery. It
///   may only read; use it to check the configuration. What it allocates stays for the life
///   of the instance. After an error the host does not use the instance.
/// - `stop`: `fn (*Turn) void`, called before an orderly close; a host need not call it. It may
///   only read.
/// - `graph_changed`: true to get deliveries of the kind `graph_changed`.
/// - `manifest`: the module's description of itself, as JSON.
pub fn Creature(comptime options: anytype) type {
    const Options = @TypeOf(options);
    checkOptions(Options);
    return struct {
        pub const graph_changed = @hasField(Options, "graph_changed") and options.graph_changed;

        pub fn runInit(t: *Turn) i32 {
            return if (@hasField(Options, "init")) t.finish(options.init(t)) else 0;
        }

        pub fn runHandle(t: *Turn) i32 {
            return t.finish(options.handle(t));
        }

        pub fn runStop(t: *Turn) void {
            if (@hasField(Options, "stop")) options.stop(t);
        }

        fn marker() callconv(.c) void {}

        fn exportInit() callconv(.c) i32 {
            memory.reset();
            var t: Turn = .init(.{}, memory.allocator, @fromBackingInt(0), 0);
            const status = runInit(&t);
            memory.keep();
            return status;
        }

        fn exportHandle(kind: i32, size: i32) callconv(.c) i32 {
            memory.reset();
            var t: Turn = .init(.{}, memory.allocator, @fromBackingInt(kind), @intCast(size));
            return runHandle(&t);
        }

        fn exportStop() callconv(.c) void {
            memory.reset();
            var t: Turn = .init(.{}, memory.allocator, @fromBackingInt(0), 0);
            runStop(&t);
        }

        comptime {
            if (is_wasm) {
                @export(&marker, .{ .name = raw.exports.marker });
                @export(&exportHandle, .{ .name = raw.exports.handle });
                if (@hasField(Options, "init")) @export(&exportInit, .{ .name = raw.exports.init });
                if (@hasField(Options, "stop")) @export(&exportStop, .{ .name = raw.exports.stop });
                if (graph_changed) @export(&marker, .{ .name = raw.exports.graph_changed });
                if (@hasField(Options, "manifest")) asm (section(options.manifest));
            }
        }
    };
}

fn checkOptions(comptime Options: type) void {
    const known = [_][]const u8{ "handle", "init", "stop", "graph_changed", "manifest" };
    if (!@hasField(Options, "handle")) @compileError("a creature needs the option handle");
    for (@typeInfo(Options).@"struct".field_names) |name| {
        for (known) |k| {
            if (std.mem.eql(u8, name, k)) break;
        } else @compileError("a creature has no option " ++ name ++ "; it has handle, init, stop, graph_changed, manifest");
    }
}

/// The manifest as a custom section, in the language of the assembler. A linksection would
/// make it data.
fn section(comptime manifest: []const u8) []const u8 {
    @setEvalBranchQuota(20 * manifest.len + 1000);
    var text: []const u8 = ".section .custom_section." ++ raw.manifest_section ++ ",\"\",@\n.ascii \"";
    for (manifest) |c| text = text ++ switch (c) {
        '"', '\\' => "\\" ++ [_]u8{c},
        '\n' => "\\n",
        else => [_]u8{c},
    };
    return text ++ "\"\n";
}

/// The panic handler of a creature: it logs the text and traps.
pub const panic = std.debug.FullPanic(struct {
    fn logAndTrap(text: []const u8, _: ?usize) noreturn {
        @branchHint(.cold);
        _ = (raw.Host{}).log(@backingInt(raw.Level.err), text);
        @trap();
    }
}.logAndTrap);
