package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/host"
	"github.com/seed47132306/terrarium/internal/selflimit"
	"github.com/seed47132306/terrarium/operations"
)

func doctorCommand(s streams) *cobra.Command {
	var format string
	var cache cacheFlags
	cmd := &cobra.Command{
		Use:   "doctor [DIR]",
		Short: "Show what this machine offers: the engine, the cache, the toolchains, memory and the disk",
		Long: `doctor shows which engine runs modules, whether compiled modules can be kept, which
toolchains for creatures are installed and how to get the others, how much memory there
is, and whether DIR (by default the current directory) can hold a session directory. It
warns of file systems on which sessions of the durability full may not survive a power
failure: those of a network, in memory, in a layer of a container, in user space or
without a journal, and those that are mounted with certain options. Memory and file
systems are shown on Linux only.

If DIR is a session directory, doctor compares the memory and the open files that its
graphs need with what the process may have, and the clock with the newest event.

Exit codes: 0 terrarium can run here; 1 the cache or the directory cannot be used; 2 the
command line is not valid. Missing toolchains and warnings do not change the exit code.`,
		Example: "  terrarium doctor\n  terrarium doctor /var/lib/sessions -o json",
		Args:    arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(format); err != nil {
				return err
			}
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			d := &diagnosis{Version: versions(cmd.Context()), AddressBits: bits.UintSize, Engine: engineHere(cmd.Context()), Problems: []*operations.ErrorRecord{}, Warnings: []*operations.ErrorRecord{}}
			if err := d.examineCache(cmd.Context(), &cache); err != nil {
				return err
			}
			d.Toolchains = findToolchains(cmd.Context())
			system := os.DirFS("/")
			d.Memory = memoryOf(system)
			d.examineDirectory(system, dir)
			d.examineSession(cmd.Context(), dir, time.Now())
			d.examineClock(time.Now())
			return d.print(s, format)
		},
	}
	cache.add(cmd.Flags())
	formatFlag(cmd, &format)
	return cmd
}

// diagnosis is what doctor prints.
type diagnosis struct {
	Version    string            `json:"version"`
	Engine     engineRecord      `json:"engine"`
	Cache      cacheRecord       `json:"cache"`
	Toolchains []toolchainRecord `json:"toolchains"`
	Memory     memoryRecord      `json:"memory"`
	// AddressBits are the bits of an address: 32 or 64.
	AddressBits int                       `json:"address_bits"`
	Directory   directoryRecord           `json:"directory"`
	Session     *sessionRecord            `json:"session,omitempty"` // if the directory has any
	Warnings    []*operations.ErrorRecord `json:"warnings"`
	Problems    []*operations.ErrorRecord `json:"problems"`
}

type cacheRecord struct {
	Dir    string `json:"dir,omitempty"` // empty: none is used
	Usable bool   `json:"usable"`
	Bytes  int64  `json:"bytes"`
}

type directoryRecord struct {
	Dir      string `json:"dir"`
	Writable bool   `json:"writable"`
	// FreeBytes and FreeInodes are -1 where the system does not say.
	FreeBytes  int64 `json:"free_bytes"`
	FreeInodes int64 `json:"free_inodes"`
	// SyncMicroseconds is the median of some syncs of a small file, or -1.
	SyncMicroseconds int64            `json:"sync_microseconds"`
	OpenFiles        int64            `json:"open_files"` // the most that the process may have open, or -1
	FileSystem       fileSystemRecord `json:"file_system"`
}

// examineCache opens the cache as a run would.
func (d *diagnosis) examineCache(ctx context.Context, f *cacheFlags) error {
	dir, _, err := f.resolve()
	if err != nil || dir == "" {
		return err
	}
	d.Cache.Dir = dir
	h, err := host.New(ctx, host.Options{CacheDir: dir})
	if err == nil {
		err = h.Close(ctx)
	}
	if err != nil {
		d.Problems = append(d.Problems, operations.NewErrorRecord(err))
		return nil
	}
	d.Cache.Usable = true
	d.Cache.Bytes = bytesBelow(dir)
	return nil
}

// bytesBelow adds up the sizes of the files below a directory. Those that disappear
// meanwhile count nothing.
func bytesBelow(dir string) (total int64) {
	_ = filepath.WalkDir(dir, func(_ string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if info, err := e.Info(); err == nil {
				total += info.Size()
			}
		}
		return nil
	})
	return total
}

// examineDirectory tries whether a directory can hold sessions.
func (d *diagnosis) examineDirectory(system fs.FS, dir string) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		abs = dir
	}
	d.Directory = directoryRecord{Dir: abs, FreeBytes: -1, FreeInodes: -1, SyncMicroseconds: -1, OpenFiles: selflimit.OpenFiles()}
	if free, inodes, ok := freeSpace(abs); ok {
		d.Directory.FreeBytes, d.Directory.FreeInodes = free, inodes
	}
	d.Directory.FileSystem = fileSystemOf(system, real(abs))
	d.Warnings = append(d.Warnings, d.Directory.FileSystem.warnings()...)
	d.Warnings = append(d.Warnings, d.Directory.spaceWarnings()...)
	file, err := os.CreateTemp(abs, ".terrarium-doctor-")
	if err == nil {
		var took time.Duration
		if took, err = syncTime(file); err == nil {
			d.Directory.SyncMicroseconds = took.Microseconds()
			if w := d.Directory.FileSystem.syncWarning(took); len(w) > 0 {
				d.Warnings, d.Directory.FileSystem.Durability = append(d.Warnings, w...), journal.Normal.String()
			}
		}
		if cerr := file.Close(); err == nil {
			err = cerr
		}
		if rerr := os.Remove(file.Name()); err == nil {
			err = rerr
		}
	}
	if err != nil {
		d.Problems = append(d.Problems, &operations.ErrorRecord{
			Code: "storage", Message: "the directory cannot be written: " + err.Error(), Remedy: "use another directory, or make this one writable",
		})
	}
	d.Directory.Writable = err == nil
}

// spaceWarnings warns of a disk that is almost full.
func (d *directoryRecord) spaceWarnings() (out []*operations.ErrorRecord) {
	warn := func(message string) {
		out = append(out, &operations.ErrorRecord{Code: abi.Storage.String(), Message: message, Remedy: "make room on the disk, or use another one"})
	}
	if d.FreeBytes >= 0 && d.FreeBytes < fewBytes {
		warn("the disk has only " + size(d.FreeBytes) + " free: the history of graphs that merge is not copied below " + size(fewBytes))
	}
	if d.FreeInodes >= 0 && d.FreeInodes < fewInodes {
		warn("the disk has only " + count(d.FreeInodes, "free inode") + ": each session needs up to three, and so does each file in reserve")
	}
	return out
}

// clockSet is a time before which a clock cannot be right: terrarium is younger.
var clockSet = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// examineClock warns of a clock that nothing has set since the machine was started.
func (d *diagnosis) examineClock(now time.Time) {
	if now.Before(clockSet) {
		d.Warnings = append(d.Warnings, &operations.ErrorRecord{
			Code:    abi.Unavailable.String(),
			Message: "the clock is not set: it says " + now.UTC().Format(time.RFC3339) + "; events get wrong times until it is set, and timers may then end early",
			Remedy:  "set the clock, for example by NTP, before sessions are started",
		})
	}
}

func (d *diagnosis) print(s streams, format string) error {
	var err error
	if format == "json" {
		err = printJSON(s, d)
	} else {
		_, err = io.WriteString(s.text(), d.text())
		err = failWith(exitFailed, err)
	}
	if err == nil && len(d.Problems) > 0 {
		return &exit{code: exitFailed, err: fmt.Errorf("%s", d.Problems[0].Message), shown: true}
	}
	return err
}

func (d *diagnosis) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nengine      %s: %s\n", d.Version, d.Engine.Kind, d.Engine.Reason)
	switch {
	case len(d.Engine.Translations) > 0:
		fmt.Fprintf(&b, "as Go code  %s: translated when this program was built\n", strings.Join(d.Engine.Translations, ", "))
	case d.Engine.Without != "":
		fmt.Fprintf(&b, "as Go code  none: %s\n", d.Engine.Without)
	}
	switch {
	case d.Cache.Dir == "":
		b.WriteString("cache       none: every process compiles its modules\n")
	case d.Cache.Usable:
		fmt.Fprintf(&b, "cache       %s, private, %s\n", oneLine(d.Cache.Dir), size(d.Cache.Bytes))
	default:
		fmt.Fprintf(&b, "cache       %s, which cannot be used\n", oneLine(d.Cache.Dir))
	}
	fmt.Fprintf(&b, "directory   %s", oneLine(d.Directory.Dir))
	if d.Directory.FreeBytes >= 0 {
		fmt.Fprintf(&b, ", %s free", size(d.Directory.FreeBytes))
	}
	if d.Directory.FreeInodes >= 0 {
		fmt.Fprintf(&b, ", %s free", count(d.Directory.FreeInodes, "inode"))
	}
	b.WriteString("\n" + d.systemText())
	if r := d.Session; r != nil {
		fmt.Fprintf(&b, "sessions    %s with %s, which need about %s of memory and %s\n",
			count(int64(r.Graphs), "graph"), count(int64(r.Creatures), "creature"), size(r.MemoryBytes), count(r.OpenFiles, "open file"))
	}
	if d.Directory.SyncMicroseconds >= 0 {
		fmt.Fprintf(&b, "sync        %v, the median of %d\n", time.Duration(d.Directory.SyncMicroseconds)*time.Microsecond, syncsTried)
	}
	if d.Directory.OpenFiles >= 0 {
		fmt.Fprintf(&b, "open files  at most %s\n", count(d.Directory.OpenFiles, "file"))
	}
	b.WriteString("\ntoolchains\n")
	for _, t := range d.Toolchains {
		if t.Missing == "" {
			fmt.Fprintf(&b, "  %-16s %s\n", t.Language, oneLine(t.Version))
		} else {
			fmt.Fprintf(&b, "  %-16s %s is missing: %s\n", t.Language, t.Missing, t.Remedy)
		}
	}
	if len(d.Problems) == 0 {
		b.WriteString("\nterrarium can run here.\n")
	}
	for _, w := range d.Warnings {
		fmt.Fprintf(&b, "\nWarning: %s\n  Remedy: %s\n", oneLine(w.Message), oneLine(w.Remedy))
	}
	for _, p := range d.Problems {
		fmt.Fprintf(&b, "\nProblem: %s\n", oneLine(p.Message))
		if p.Remedy != "" {
			fmt.Fprintf(&b, "  Remedy: %s\n", oneLine(p.Remedy))
		}
	}
	return b.String()
}

// systemText is the file system and the memory, as far as the system says.
func (d *diagnosis) systemText() string {
	var b strings.Builder
	if f := &d.Directory.FileSystem; f.Type != "unknown" {
		fmt.Fprintf(&b, "disk        %s (%s)\n", oneLine(f.Type), oneLine(strings.Join(f.Options, ", ")))
	}
	switch f := &d.Directory.FileSystem; {
	case f.Durability != "unknown":
		fmt.Fprintf(&b, "durability  at most %s\n", f.Durability)
	case f.Type != "unknown":
		fmt.Fprintf(&b, "durability  unknown: terrarium does not know what %s keeps through a power failure\n", oneLine(f.Type))
	}
	if m := &d.Memory; m.TotalBytes >= 0 {
		fmt.Fprintf(&b, "memory      %s", size(m.TotalBytes))
		if m.AvailableBytes >= 0 {
			fmt.Fprintf(&b, ", %s available", size(m.AvailableBytes))
		}
		if m.LimitBytes >= 0 {
			fmt.Fprintf(&b, ", limited to %s", size(m.LimitBytes))
		}
		b.WriteString("\n")
	}
	if d.AddressBits == 32 {
		b.WriteString("addresses   32 bits: all creatures together have less than 4 GiB of memory, and each less than 2 GiB, even if their limits are higher\n")
	}
	return b.String()
}
