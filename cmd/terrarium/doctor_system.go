package main

import (
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/operations"
)

// What doctor knows of the file system and of memory is in files of Linux. On other
// systems these do not exist, and the values are unknown.

// maxSystemFile bounds how much of a file of the system is read, in bytes.
const maxSystemFile = 4 << 20

// fileSystemRecord is the file system of the directory.
type fileSystemRecord struct {
	Type     string   `json:"type"` // unknown where the system does not say
	Options  []string `json:"options,omitempty"`
	ReadOnly bool     `json:"read_only"`
	Network  bool     `json:"network"` // other machines may use it too
	// Durability is the strongest that sessions have there, normal or full, as far as the
	// type, the options and the time of a sync say; or unknown.
	Durability string `json:"durability"`
}

// memoryRecord is the memory of the machine. Numbers are -1 where the system does not say.
type memoryRecord struct {
	TotalBytes     int64 `json:"total_bytes"`
	AvailableBytes int64 `json:"available_bytes"`
	// LimitBytes is the lowest limit of the control groups of the process, or -1.
	LimitBytes int64 `json:"limit_bytes"`
}

// networkTypes are the types of file systems that other machines may use too, and those that
// a machine shares with its host.
var networkTypes = []string{"9p", "afs", "beegfs", "ceph", "cifs", "gfs2", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "prl_fs", "smb3", "smbfs", "vboxsf",
	"virtiofs", "vmhgfs", "fuse.glusterfs", "fuse.mergerfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs", "fuse.vmhgfs-fuse"}

// memoryTypes are the types of file systems that a restart of the machine empties.
var memoryTypes = []string{"devtmpfs", "hugetlbfs", "ramfs", "rootfs", "tmpfs"}

// safeTypes are the types of file systems that survive a power failure with everything that
// was synced. For a type that is in no list, this is not known.
var safeTypes = []string{"bcachefs", "btrfs", "ext3", "ext4", "f2fs", "jfs", "nilfs2", "reiserfs", "ubifs", "xfs", "zfs"}

// unsafeOptions are options of mounts with which a disk may lose what it has synced.
var unsafeOptions = []string{"nobarrier", "barrier=0", "barrier=none", "checkpoint=disable", "disable_roll_forward", "eatmydata", "fsync_mode=nobarrier",
	"journal_flush_disabled", "nointegrity", "noload", "nolog", "norecovery", "volatile"}

// unloggedTypes are the types of file systems that have no journal: a power failure can damage
// the file system itself.
var unloggedTypes = []string{"exfat", "ext2", "minix", "msdos", "vfat"}

// inUserSpace reports whether a program implements a type of file systems.
func inUserSpace(kind string) bool {
	return kind == "fuse" || kind == "fuseblk" || strings.HasPrefix(kind, "fuse.")
}

// fileSystemOf finds the file system of an absolute directory without links. root has the
// files of the system.
func fileSystemOf(root fs.FS, dir string) fileSystemRecord {
	out := fileSystemRecord{Type: "unknown", Durability: "unknown"}
	if m, ok := mountOf(mountsOf(root), dir); ok {
		out.Type, out.Options = m.kind, m.options
	}
	out.ReadOnly = slices.Contains(out.Options, "ro")
	out.Network = slices.Contains(networkTypes, out.Type)
	switch {
	case len(out.warnings()) > 0:
		out.Durability = journal.Normal.String()
	case slices.Contains(safeTypes, out.Type):
		out.Durability = journal.Full.String()
	}
	return out
}

// mount is a mounted file system.
type mount struct {
	id, parent string // the parent is the mount that has the directory at
	at         string
	kind       string
	options    []string
}

// mountsOf reads the mounts that the process sees, in the order in which the system lists
// them. Only a space separates fields, which may be empty.
func mountsOf(root fs.FS) (out []mount) {
	for _, line := range linesOf(root, "proc/self/mountinfo") {
		fields := strings.Split(line, " ")
		if len(fields) < 6 {
			continue
		}
		rest := slices.Index(fields[6:], "-") + 7
		if rest == 6 || len(fields) < rest+3 {
			continue
		}
		out = append(out, mount{fields[0], fields[1], unescaped(fields[4]), fields[rest], options(fields[5], fields[rest+2])})
	}
	return out
}

// mountOf finds the mount that has a directory, as the system does: from the root along the
// path, at each place to the mount that covers it. A longer path may be that of a mount
// which a later one hides.
func mountOf(mounts []mount, dir string) (found mount, ok bool) {
	listed := map[string]bool{}
	for _, m := range mounts {
		listed[m.id] = true
	}
	for range mounts { // so that it ends
		next := -1
		for i, m := range mounts {
			outermost := m.parent == m.id || !listed[m.parent]
			inside := ok && m.parent == found.id && m.id != found.id
			if (inside || !ok && outermost) && below(dir, m.at) && (next < 0 || len(m.at) <= len(mounts[next].at)) { // of two at one place, the later one hides the other
				next = i
			}
		}
		if next < 0 {
			break
		}
		found, ok = mounts[next], true
	}
	return found, ok
}

func below(dir, mount string) bool {
	return dir == mount || mount == "/" || strings.HasPrefix(dir, mount+"/")
}

// maxOption is the longest option that is shown; longer ones list layers of a container.
const maxOption = 64

// options merges the options of a mount and of its file system, either of which may be
// read-only.
func options(lists ...string) (out []string) {
	for _, list := range lists {
		for option := range strings.SplitSeq(list, ",") {
			if option != "" && len(option) <= maxOption && !slices.Contains(out, option) {
				out = append(out, option)
			}
		}
	}
	if slices.Contains(out, "ro") {
		out = slices.DeleteFunc(out, func(option string) bool { return option == "rw" })
	}
	return out
}

// unescaped replaces the octal numbers of characters such as spaces.
func unescaped(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) {
			if n, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// memoryOf reads how much memory there is.
func memoryOf(root fs.FS) memoryRecord {
	out := memoryRecord{-1, -1, -1}
	for _, line := range linesOf(root, "proc/meminfo") {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[2] != "kB" {
			continue
		}
		n, err := strconv.ParseInt(fields[1], 10, 43) // in bytes it fits too
		switch {
		case err != nil:
		case fields[0] == "MemTotal:":
			out.TotalBytes = n << 10
		case fields[0] == "MemAvailable:":
			out.AvailableBytes = n << 10
		}
	}
	for _, line := range linesOf(root, "proc/self/cgroup") {
		parts := strings.SplitN(line, ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch {
		case parts[0] == "0" && parts[1] == "":
			out.lower(root, "sys/fs/cgroup", parts[2], "memory.max")
		case slices.Contains(strings.Split(parts[1], ","), "memory"):
			out.lower(root, "sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes")
		}
	}
	return out
}

// lower takes the limits of a control group and of those around it. In a container, the
// path may be that of the host, and the files are those of the container.
func (m *memoryRecord) lower(root fs.FS, base, group, file string) {
	for at := path.Clean("/" + group); ; at = path.Dir(at) {
		for _, line := range linesOf(root, path.Join(base, at, file)) {
			n, err := strconv.ParseInt(line, 10, 64)
			if err == nil && n < 1<<62 && (m.LimitBytes < 0 || n < m.LimitBytes) {
				m.LimitBytes = n
			}
		}
		if at == "/" {
			return
		}
	}
}

// linesOf returns the lines of a file of the system; none if it cannot be read as a whole.
func linesOf(root fs.FS, name string) []string {
	file, err := root.Open(name)
	if err != nil {
		return nil
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxSystemFile+1))
	if err != nil || len(text) > maxSystemFile {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// warnings says what a session directory on the file system cannot rely on. Each of them is a
// reason not to promise that sessions of the durability full survive a power failure.
func (f *fileSystemRecord) warnings() (out []*operations.ErrorRecord) {
	warn := func(message, remedy string) {
		out = append(out, &operations.ErrorRecord{Code: abi.Storage.String(), Message: message, Remedy: remedy})
	}
	switch {
	case f.Network:
		warn("the directory is on a network file system ("+f.Type+"), whose locks and syncs SQLite cannot rely on: two processes could write to one session directory, and acknowledged events could be lost",
			"keep session directories on a local disk")
	case slices.Contains(memoryTypes, f.Type):
		warn("the directory is in memory ("+f.Type+"): its sessions are lost when the machine restarts", "keep session directories on a disk")
	case f.Type == "overlay":
		warn("the directory is in a layer of a container (overlay), which is removed with the container", "keep session directories in a volume")
	case inUserSpace(f.Type):
		warn("the directory is on a file system in user space ("+f.Type+"), whose program decides when the disk gets what was synced", "keep session directories on a file system of the kernel")
	case slices.Contains(unloggedTypes, f.Type):
		warn("the file system ("+f.Type+") has no journal, so a power failure can damage the file system itself", "use one with a journal, such as ext4, or f2fs for flash")
	}
	for _, option := range f.Options {
		name, _, _ := strings.Cut(option, ":") // f2fs has a number behind it
		switch {
		case slices.Contains(unsafeOptions, name):
			warn("the file system is mounted with "+option+": the durability full does not survive a power loss", "mount it without "+option)
		case option == "data=writeback":
			warn("the file system is mounted with data=writeback: a power loss can leave old content in the parts of files that were written last, with every durability",
				"mount it with data=ordered")
		}
	}
	return out
}

// real returns a directory without links, as far as it exists.
func real(dir string) string {
	if plain, err := filepath.EvalSymlinks(dir); err == nil {
		return plain
	}
	return dir
}

const (
	syncsTried = 9
	// fastestSync is shorter than a sync on any disk that keeps what it has synced.
	fastestSync = 10 * time.Microsecond
)

// syncTime returns the median time in which a file is synced after a small write.
func syncTime(file *os.File) (time.Duration, error) {
	var took []time.Duration
	for range syncsTried {
		if _, err := file.Write([]byte("x")); err != nil {
			return 0, err
		}
		begun := time.Now()
		if err := file.Sync(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	return took[syncsTried/2], nil
}

// syncWarning warns of syncs that are too fast for a disk. In memory, every sync is.
func (f *fileSystemRecord) syncWarning(took time.Duration) []*operations.ErrorRecord {
	if took >= fastestSync || slices.Contains(memoryTypes, f.Type) {
		return nil
	}
	return []*operations.ErrorRecord{{
		Code:    abi.Storage.String(),
		Message: "a sync takes " + took.String() + ", which is too fast for a disk: the file system or the device may not wait until data is kept, and then the durability full does not survive a power loss",
		Remedy:  "test the device by switching it off while a session is written, or use another disk",
	}}
}
