package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

var mounts = `22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,data=ordered
28 27 0:50 / /mnt rw - nfs4 server:/ann rw,vers=4.2
29 28 8:2 / /mnt/ann/my\040disk ro,noatime shared:2 master:1 - xfs /dev/sdb1 rw,nobarrier
30 27 0:51 / /run rw,nosuid - tmpfs tmpfs rw,size=1k
31 27 0:52 / /data rw - ext4 /dev/sdc1 rw,data=writeback
32 27 0:53 / /data rw - overlay overlay rw,lowerdir=/a:/b,upperdir=/` + strings.Repeat("x", 100) + `
a line of something else - -
34 27 0:55 / /sd rw,relatime - vfat /dev/mmcblk0p1 rw,fmask=0022
35 27 0:56 / /ntfs rw - fuseblk /dev/sde1 rw,user_id=0
36 27 0:57 / /flash rw - f2fs /dev/mmcblk0p3 rw,fsync_mode=nobarrier
37 27 0:58 / /layer rw - overlay overlay rw,lowerdir=/a,volatile
38 27 0:59 / /emmc rw - f2fs /dev/mmcblk0p4 rw,fsync_mode=posix
39 27 0:60 / /remote rw - fuse.sshfs ann@server: rw
33 27 0:54 / /datastore rw - ext3 /dev/sdd1 rw,data=writeback,barrier=0
`

// TestFileSystems finds the file system of directories, and the warnings about it.
func TestFileSystems(t *testing.T) {
	root := fstest.MapFS{"proc/self/mountinfo": {Data: []byte(mounts)}}
	var got strings.Builder
	for _, dir := range []string{"/", "/srv/S", "/mnts/S", "/mnt/ann", "/mnt/ann/my disk/S", "/run/S", "/data", "/datastore/S", "/sd", "/ntfs/S", "/flash", "/layer", "/emmc", "/remote"} {
		f := fileSystemOf(root, dir)
		text, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&got, "%s %s\n", dir, text)
		for _, w := range f.warnings() {
			fmt.Fprintf(&got, "  %s\n    %s\n", w.Message, w.Remedy)
		}
	}
	golden := filepath.Join("testdata", "file_systems.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got.String()); d != "" {
		t.Error(d)
	}
	if f := fileSystemOf(fstest.MapFS{}, "/"); f.Type != "unknown" || len(f.warnings()) > 0 {
		t.Errorf("where the system does not say: %+v", f)
	}
}

// TestMounts finds the mount that a directory is on among hidden ones, and which durability it
// can hold.
func TestMounts(t *testing.T) {
	const root = "27 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
	for name, c := range map[string]struct{ mounts, dir, kind, durability string }{
		"memory at the root":          {"1 1 0:2 / / rw - rootfs rootfs rw\n", "/S", "rootfs", "normal"},
		"above the root file system":  {"1 1 0:2 / / rw - rootfs rootfs rw\n" + root + "28 1 0:3 / /S rw - tmpfs tmpfs rw\n", "/S", "ext4", "full"},
		"a shorter one hides":         {root + "28 27 8:2 / /data/S rw - xfs /dev/sdb1 rw\n29 27 0:50 / /data rw - tmpfs tmpfs rw\n", "/data/S", "tmpfs", "normal"},
		"the system lists it first":   {root + "29 27 0:50 / /data rw - tmpfs tmpfs rw\n28 27 8:2 / /data/S rw - xfs /dev/sdb1 rw\n", "/data/S", "tmpfs", "normal"},
		"one within the shorter one":  {root + "29 27 0:50 / /data rw - tmpfs tmpfs rw\n28 29 8:2 / /data/S rw - xfs /dev/sdb1 rw\n", "/data/S/T", "xfs", "full"},
		"above each other":            {root + "28 27 8:2 / /d rw - xfs /dev/sdb1 rw\n29 28 0:50 / /d rw - tmpfs tmpfs rw\n", "/d", "tmpfs", "normal"},
		"below each other":            {root + "29 28 0:50 / /d rw - tmpfs tmpfs rw\n28 27 8:2 / /d rw - xfs /dev/sdb1 rw\n", "/d", "tmpfs", "normal"},
		"other spaces":                {root + "28 27 0:50 / /a\u00a0b rw - tmpfs tmpfs rw\n", "/a\u00a0b/S", "tmpfs", "normal"},
		"no source":                   {root + "28 27 0:50 / /d rw - tmpfs  rw\n", "/d/S", "tmpfs", "normal"},
		"a long line":                 {root + "28 27 0:50 / /d rw - overlay o rw,lowerdir=/" + strings.Repeat("x", 1<<17) + "\n29 27 0:51 / /e rw - tmpfs t rw\n", "/e/S", "tmpfs", "normal"},
		"too many lines":              {strings.Repeat(root, maxSystemFile/len(root)+1), "/S", "unknown", "unknown"},
		"a circle":                    {"1 2 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:1 / / rw - xfs /dev/sda1 rw\n", "/S", "unknown", "unknown"},
		"a new type":                  {"27 1 8:1 / / rw - newfs /dev/sda1 rw\n", "/S", "newfs", "unknown"},
		"a new type without barriers": {"27 1 8:1 / / rw - newfs /dev/sda1 rw,nobarrier\n", "/S", "newfs", "normal"},
		"without its journal":         {"27 1 8:1 / / ro - ext4 /dev/sda1 ro,noload\n", "/S", "ext4", "normal"},
		"without checkpoints":         {"27 1 8:1 / / rw - f2fs /dev/sda1 rw,checkpoint=disable:0\n", "/S", "f2fs", "normal"},
		"one file system twice":       {root + "28 27 8:1 /srv /srv rw - ext4 /dev/sda1 rw\n", "/srv/S", "ext4", "full"},
		"data=journal":                {"27 1 8:1 / / rw - ext4 /dev/sda1 rw,data=journal,barrier=1\n", "/S", "ext4", "full"},
	} {
		f := fileSystemOf(fstest.MapFS{"proc/self/mountinfo": {Data: []byte(c.mounts)}}, c.dir)
		if f.Type != c.kind || f.Durability != c.durability || f.Durability == "full" && len(f.warnings()) > 0 {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// TestUnknownDurability expects words that say that a durability is unknown.
func TestUnknownDurability(t *testing.T) {
	var d diagnosis
	d.Memory.TotalBytes = -1
	d.Directory.FileSystem = fileSystemRecord{Type: "newfs", Options: []string{"rw"}, Durability: "unknown"}
	if got, want := d.systemText(), "disk        newfs (rw)\ndurability  unknown: terrarium does not know what newfs keeps through a power failure\n"; got != want {
		t.Errorf("%q", got)
	}
	d.Directory.FileSystem = fileSystemRecord{Type: "unknown", Durability: "normal"} // because its syncs are too fast
	if got, want := d.systemText(), "durability  at most normal\n"; got != want {
		t.Errorf("%q", got)
	}
}

// TestMemoryOf reads both versions of control groups, and control groups without a limit.
func TestMemoryOf(t *testing.T) {
	meminfo := &fstest.MapFile{Data: []byte("MemTotal:       16384 kB\nMemFree: 1 kB\nMemAvailable:    8192 kB\nHugePages_Total: 0\n")}
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for name, c := range map[string]struct {
		root fstest.MapFS
		want memoryRecord
	}{
		"nothing":   {fstest.MapFS{}, memoryRecord{-1, -1, -1}},
		"no groups": {fstest.MapFS{"proc/meminfo": meminfo}, memoryRecord{16 << 20, 8 << 20, -1}},
		"version 2": {fstest.MapFS{
			"proc/meminfo": meminfo, "proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/b/memory.max": file("max\n"),
			"sys/fs/cgroup/a/memory.max": file("4096\n"), "sys/fs/cgroup/memory.max": file("8192\n"),
		}, memoryRecord{16 << 20, 8 << 20, 4096}},
		"version 1, in a container": {fstest.MapFS{
			"proc/self/cgroup": file("5:cpu,memory:/of the host/x:y\n0::/\nnothing\n"), "sys/fs/cgroup/memory/memory.limit_in_bytes": file("1048576\n"),
		}, memoryRecord{-1, -1, 1 << 20}},
		"without a limit": {fstest.MapFS{
			"proc/self/cgroup": file("5:memory:/\n"), "sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712\n"),
		}, memoryRecord{-1, -1, -1}},
		"damaged": {fstest.MapFS{
			"proc/meminfo": file("MemTotal: 99999999999999999999 kB\nMemAvailable: x kB\n"), "proc/self/cgroup": file("::\n0::../../..\n"),
		}, memoryRecord{-1, -1, -1}},
	} {
		if got := memoryOf(c.root); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestClockThatIsNotSet expects a warning about a clock at 1970, and none about a later one.
func TestClockThatIsNotSet(t *testing.T) {
	for at, want := range map[int64]int{0: 1, clockSet.Unix() - 1: 1, clockSet.Unix(): 0} {
		var d diagnosis
		if d.examineClock(time.Unix(at, 0)); len(d.Warnings) != want || len(d.Problems) > 0 {
			t.Errorf("at %d there are the warnings %v", at, d.Warnings)
		}
	}
}

// TestSyncsThatAreTooFast expects a warning about fast syncs on disks, and none in memory.
func TestSyncsThatAreTooFast(t *testing.T) {
	for _, c := range []struct {
		kind string
		took time.Duration
		want int
	}{{"ext4", time.Microsecond, 1}, {"ext4", fastestSync, 0}, {"unknown", 0, 1}, {"tmpfs", 0, 0}} {
		f := fileSystemRecord{Type: c.kind}
		if got := f.syncWarning(c.took); len(got) != c.want {
			t.Errorf("%s, %v: %v", c.kind, c.took, got)
		}
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "x"))
	if err != nil {
		t.Fatal(err)
	}
	if took, err := syncTime(file); took <= 0 || err != nil {
		t.Errorf("a sync takes %v, %v", took, err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	if _, err := syncTime(file); err == nil {
		t.Error("a closed file is synced")
	}
}
