// Package losevfs is a file layer for tests that forgets what was not synced,
// as a disk does when the power fails, and that can be full or broken for a
// while. It is compiled into tests only.
//
// Importing it puts it in front of SQLite's own file layer, for the whole
// process. Files outside of a mounted directory are not affected.
//
// Within one, writes go to the real files, so that every connection sees them, and also to
// memory: what each file held when it was last synced, and every write since.
// [Disk.PowerOff] puts the files into a state that a disk may have after a power loss. Of
// the unsynced writes of a file, all, none, the first ones or any may have survived, each
// in whole or up to a sector. A file that was made or removed since its directory was last
// synced may be there or not, independently of others. The shared-memory index of the
// write-ahead log does not survive at all.
//
// Not simulated are writes that damage adjacent bytes, sectors that are lost later, a
// sync that lies, a failed sync after which the system drops what it could not write,
// directories that vanish, and the renaming of files that SQLite has open. What the
// program writes without SQLite is durable once the program has synced it. The program has
// to report these syncs to the layer, and also what it renames or links; see
// [Disk.Synced], [Disk.Renamed] and [Disk.Linked]. Whatever it does after the power has
// failed is lost when the power is back.
package losevfs
