//! Numbers the messages that it passes on.

const terrarium = @import("terrarium");

pub const creature = terrarium.Creature(.{ .handle = handle });

fn handle(t: *terrarium.Turn) !void {
    if (t.kind != .message) return;
    // FAULT
    const text = try t.text();
    const n = try t.stateWhole("n") + 1;
    try t.stateSetWhole("n", n);
    try t.send("out", try t.print("VERSION {s} {d}", .{ text, n }), &.{});
}
