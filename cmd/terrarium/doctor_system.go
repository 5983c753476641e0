package main

import (
	"bufio"
	"cmp"
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
	// type and the options say; or unknown.
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
var memoryTypes = []string{"ramfs", "tmpfs"}

// unsafeOptions are options of mounts with which a disk may lose what it has synced.
var unsafeOptions = []string{"nobarrier", "barrier=0", "barrier=none", "eatmydata", "fsync_mode=nobarrier", "nointegrity", "volatile"}

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
	longest := -1
	for fields := range linesOf(root, "proc/self/mountinfo") {
		dash := slices.Index(fields, "-")
		if dash < 6 || len(fields) < dash+4 {
			continue
		}
		at := unescaped(fields[4])
		if !below(dir, at) || len(at) < longest { // of two at one place, the later one hides the other
			continue
		}
		longest = len(at)
		out = fileSystemRecord{Type: fields[dash+1], Options: options(fields[5], fields[dash+3])}
	}
	out.ReadOnly = slices.Contains(out.Options, "ro")
	out.Network = slices.Contains(networkTypes, out.Type)
	switch {
	case len(out.warnings()) > 0:
		out.Durability = journal.Normal.String()
	case out.Type != "unknown":
		out.Durability = journal.Full.String()
	}
	return out
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
	for fields := range linesOf(root, "proc/meminfo") {
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
	for fields := range linesOf(root, "proc/self/cgroup") {
		parts := strings.SplitN(strings.Join(fields, " "), ":", 3)
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
		for fields := range linesOf(root, path.Join(base, at, file)) {
			n, err := strconv.ParseInt(cmp.Or(fields...), 10, 64)
			if err == nil && n < 1<<62 && (m.LimitBytes < 0 || n < m.LimitBytes) {
				m.LimitBytes = n
			}
		}
		if at == "/" {
			return
		}
	}
}

// linesOf returns the fields of each line that is not empty; none if the file cannot be
// read.
func linesOf(root fs.FS, name string) func(func([]string) bool) {
	return func(yield func([]string) bool) {
		file, err := root.Open(name)
		if err != nil {
			return
		}
		defer file.Close()
		for lines := bufio.NewScanner(io.LimitReader(file, maxSystemFile)); lines.Scan(); {
			if fields := strings.Fields(lines.Text()); len(fields) > 0 && !yield(fields) {
				return
			}
		}
	}
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
		switch {
		case slices.Contains(unsafeOptions, option):
			warn("the file system is mounted with "+option+": the durability full does not survive a power loss", "mount it without "+option)
		case option == "data=writeback":
			warn("the file system is mounted with data=writeback: after a power loss, files may have old content where they were written last, with each durability",
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
	// fastestSync is less than any disk that keeps what it has synced takes.
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
