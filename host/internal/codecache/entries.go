package codecache

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed47132306/terrarium/abi"
)

// EntryDirs is the prefix of wazero's directories of entries, one for each
// version and platform.
const EntryDirs = "wazero-"

// WorkDirs is the prefix of the directories of compiling processes.
const WorkDirs = "work-"

// An entry is one file of compiled code.
type entry struct {
	Name string // below the directory of the cache
	info fs.FileInfo
}

// verify removes every entry that does not have the right tag, and every tag
// without an entry.
func (c *Cache) verify() error {
	if err := c.refuseStrangers(); err != nil {
		return err
	}
	entries, err := c.Entries()
	if err != nil {
		return err
	}
	clear(c.known)
	for _, e := range entries {
		if why := c.check(e); why != "" {
			if err := c.refuse(e.Name, why); err != nil {
				return err
			}
			continue
		}
		c.known[e.Name] = true
	}
	if err := c.dropTags(); err != nil {
		return err
	}
	return c.evict(slices.DeleteFunc(entries, func(e entry) bool { return !c.known[e.Name] }))
}

// Knows reports whether the cache has the compiled code of a module. Code of
// another compiler version also counts: that is rare, and costs only a
// compilation in this process.
func (c *Cache) Knows(sum [sha256.Size]byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	name, err := readSmall(c.modulePath(sum))
	return err == nil && c.known[string(name)]
}

// Take puts an entry in place that another process made in the directory work.
func (c *Cache) Take(ctx context.Context, sum [sha256.Size]byte, work, name string) error {
	return c.locked(ctx, func() error {
		if err := os.Rename(filepath.Join(work, name), filepath.Join(c.Dir, name)); err != nil {
			return err
		}
		info, err := os.Lstat(filepath.Join(c.Dir, name))
		if err != nil {
			return err
		}
		if err := c.tag(entry{name, info}); err != nil {
			return err
		}
		c.known[name] = true
		return replaceFile(c.modulePath(sum), []byte(name))
	})
}

func (c *Cache) modulePath(sum [sha256.Size]byte) string {
	return filepath.Join(c.Dir, Modules, hex.EncodeToString(sum[:]))
}

// check returns why an entry must not be executed, or "".
func (c *Cache) check(e entry) string {
	if why := unfit(e.info, 0); why != "" {
		return why
	}
	if e.info.Size() > cacheBytes {
		return "is larger than the cache may be"
	}
	tag, err := readSmall(c.tagPath(e.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return "has no tag"
	} else if err != nil {
		return "has a tag that cannot be read: " + err.Error()
	}
	mac, err := c.mac(e.Name)
	if err != nil {
		return "cannot be read: " + err.Error()
	}
	if !hmac.Equal(tag, mac) {
		return "does not match its tag"
	}
	return ""
}

// tag writes the tag of an entry. wazero has just written the entry, in a
// directory that only the user can write to.
func (c *Cache) tag(e entry) error {
	if unfit(e.info, 0) != "" {
		return nil // the next check removes and reports it
	}
	mac, err := c.mac(e.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another process removed it
	} else if err != nil {
		return err
	}
	return replaceFile(c.tagPath(e.Name), mac)
}

// refuse removes an entry and keeps an error that reports it.
func (c *Cache) refuse(name, why string) error {
	path := filepath.Join(c.Dir, name)
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	c.refusals = append(c.refusals, &abi.Error{Code: abi.Denied, Op: "open compilation cache",
		Message: fmt.Sprintf("%s %s; it was removed, and modules are compiled again", path, why),
		Remedy:  "if this happens again, find out which program writes to the cache", IDs: map[string]string{"path": path}})
	return nil
}

// refuseStrangers removes directories of entries, and anything else at their
// place, that wazero would follow elsewhere or that others can reach.
func (c *Cache) refuseStrangers() error {
	dirs, err := os.ReadDir(c.Dir)
	if err != nil {
		return err
	}
	for _, d := range dirs {
		work := strings.HasPrefix(d.Name(), WorkDirs)
		if !work && !strings.HasPrefix(d.Name(), EntryDirs) {
			continue
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // its process has finished with it
		} else if err != nil {
			return err
		}
		if work {
			if time.Since(info.ModTime()) > staleWrite {
				_ = os.RemoveAll(filepath.Join(c.Dir, d.Name())) // retried at the next start
			}
			continue
		}
		if why := unfit(info, fs.ModeDir); why != "" {
			if err := c.refuse(d.Name(), why); err != nil {
				return err
			}
		}
	}
	return nil
}

// Entries lists the entries of wazero, without those it is still writing.
func (c *Cache) Entries() ([]entry, error) {
	dirs, err := filepath.Glob(filepath.Join(c.Dir, EntryDirs+"*"))
	if err != nil {
		return nil, err
	}
	var all []entry
	for _, dir := range dirs {
		files, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			info, err := f.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue // wazero has renamed it meanwhile
			} else if err != nil {
				return nil, err
			}
			if strings.HasSuffix(f.Name(), ".tmp") {
				if time.Since(info.ModTime()) > staleWrite {
					_ = os.Remove(filepath.Join(dir, f.Name())) // retried at the next start
				}
				continue
			}
			all = append(all, entry{filepath.Join(filepath.Base(dir), f.Name()), info})
		}
	}
	return all, nil
}

// dropTags removes the data of missing entries.
func (c *Cache) dropTags() error {
	have := map[string]bool{}
	for name := range c.known {
		have[c.tagPath(name)] = true
	}
	tags, err := filepath.Glob(filepath.Join(c.Dir, Tags, "*"))
	if err != nil {
		return err
	}
	for _, t := range tags {
		if !have[t] {
			if err := os.RemoveAll(t); err != nil {
				return err
			}
		}
	}
	modules, err := filepath.Glob(filepath.Join(c.Dir, Modules, "*"))
	if err != nil {
		return err
	}
	for _, m := range modules {
		if name, err := readSmall(m); err != nil || !c.known[string(name)] {
			if err := os.RemoveAll(m); err != nil {
				return err
			}
		}
	}
	return nil
}

// evict removes the oldest entries while there are more than cacheBytes.
func (c *Cache) evict(entries []entry) error {
	var total int64
	for _, e := range entries {
		total += e.info.Size()
	}
	slices.SortFunc(entries, func(a, b entry) int { return a.info.ModTime().Compare(b.info.ModTime()) })
	for _, e := range entries {
		if total <= cacheBytes {
			return nil
		}
		for _, path := range []string{filepath.Join(c.Dir, e.Name), c.tagPath(e.Name)} {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		delete(c.known, e.Name)
		total -= e.info.Size()
	}
	return nil
}

// describe names the type of a file.
func describe(mode fs.FileMode) string {
	switch mode.Type() {
	case fs.ModeSymlink:
		return "symbolic link"
	case fs.ModeDir:
		return "directory"
	case 0:
		return "file"
	default:
		return "special file"
	}
}
