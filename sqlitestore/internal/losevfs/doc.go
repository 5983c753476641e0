// Package losevfs is a file layer for tests that forgets what was not synced,
// as a disk does when the power fails, and that can be full or broken for a
// while. It is compiled into tests only.
//
// Importing it puts it in front of SQLite's own file layer, for the whole
// process. Files outside of a mounted directory are not affected.
//
// Within one, writes go to the real files, so that every connection sees them,
// and beside that to memory: what each file held when it was last synced, and
// every write since. [Disk.PowerOff] puts the files into a state that a disk may
// have after a power loss: of the unsynced writes of a file, all, none, the
// first ones or any may have survived, each in whole or up to a sector; and a
// file that was made or removed since its directory was last synced may be there
// or not, whatever became of others. The shared-memory index of the write-ahead
// log does not survive at all.
//
// What is not simulated: writes that damage bytes beside their own, sectors that
// are lost later on, a sync that lies, a failed sync after which the system drops
// what it could not write, directories that vanish, and the renaming of files
// that SQLite had open. What the program writes without SQLite is durable once it has
// synced it, of which it has to tell the layer, as of the directories that it renames
// and of the files that it links; see [Disk.Synced], [Disk.Renamed] and [Disk.Linked].
// Nothing that it does after the power has failed is there when the power is back.
package losevfs
