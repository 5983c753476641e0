//! The kit as a package: the module terrarium, and `addCreature` for the build files of
//! authors.

const std = @import("std");

pub const CreatureOptions = struct {
    name: []const u8,
    /// The file that declares the creature: `pub const creature = terrarium.Creature(…);`
    root_source_file: std.Build.LazyPath,
    optimize: std.builtin.Optimize = .small,
    /// Whether the module is built without debugging information, which names the lines of traps. By default only the
    /// smallest modules are.
    strip: ?bool = null,
    /// The room for nested calls; a call that goes deeper traps.
    stack_size: u64 = 64 * 1024,
};

/// Adds a creature to the build: `zig build` installs its module as bin/NAME.wasm, and `zig
/// build test` runs the tests of its file natively.
pub fn addCreature(b: *std.Build, options: CreatureOptions) void {
    const kit = b.dependencyFromBuildZig(@This(), .{});
    const exe = b.addExecutable(.{
        .name = options.name,
        .root_module = b.createModule(.{
            .root_source_file = kit.path("src/root.zig"),
            .target = b.resolveTargetQuery(.{ .cpu_arch = .wasm32, .os_tag = .freestanding }),
            .optimize = options.optimize,
            .strip = options.strip orelse (options.optimize == .small),
            .imports = &.{
                .{ .name = "terrarium", .module = kit.module("terrarium") },
                .{ .name = "creature", .module = author(b, kit, options.root_source_file) },
            },
        }),
    });
    exe.entry = .disabled;
    exe.rdynamic = true;
    exe.stack_size = options.stack_size;
    b.installArtifact(exe);

    const tests = author(b, kit, options.root_source_file);
    tests.resolved_target = b.graph.host;
    const run = b.addRunArtifact(b.addTest(.{ .name = options.name, .root_module = tests }));
    testStep(b).dependOn(&run.step);
}

fn author(b: *std.Build, kit: *std.Build.Dependency, file: std.Build.LazyPath) *std.Build.Module {
    return b.createModule(.{
        .root_source_file = file,
        .imports = &.{.{ .name = "terrarium", .module = kit.module("terrarium") }},
    });
}

/// The step test, which the build file of the author may have made.
fn testStep(b: *std.Build) *std.Build.Step {
    if (b.top_level_steps.get("test")) |top| return &top.step;
    return b.step("test", "Run the tests of the creatures");
}

pub fn build(b: *std.Build) void {
    _ = b.addModule("terrarium", .{ .root_source_file = b.path("src/terrarium.zig") });
    const tests = b.createModule(.{ .root_source_file = b.path("src/terrarium.zig"), .target = b.graph.host });
    const run = b.addRunArtifact(b.addTest(.{ .root_module = tests }));
    b.step("test", "Run the tests of the kit").dependOn(&run.step);
}
