//! The root of every module that `addCreature` builds: it exports the author's creature and
//! sends the text of a panic to the host.

const terrarium = @import("terrarium");
const author = @import("creature");

pub const panic = terrarium.panic;

comptime {
    if (!@hasDecl(author, "creature"))
        @compileError("the creature is missing; write: pub const creature = terrarium.Creature(.{ .handle = handle });");
    _ = author.creature;
}
