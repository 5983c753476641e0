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

	"github.com/seed47132306/terrarium/abi"
)

// EntryDirs is the prefix of wazero's directories of entries, one for each
// version and platform.
const EntryDirs = "wazero-"

// oldWorkDirs is the prefix of directories that earlier versions left.
const oldWorkDirs = "work-"

// unfinished ends the names of files that are being written.
const unfinished = ".tmp"

// An entry is one file of compiled code.
type entry struct {
	Name string // below the directory of the cache
	info fs.FileInfo
}

// verify removes every entry without the right tag, and every tag without an entry. It
// makes the other entries visible to wazero.
func (c *Cache) verify() error {
	if err := c.refuseStrangers(); err != nil {
		return err
	}
	shown, err := list(c.own.Path)
	if err != nil {
		return err
	}
	for _, e := range shown {
		if err := remove(filepath.Join(c.own.Path, e.Name)); err != nil {
			return err
		}
	}
	clear(c.known)
	entries, err := c.Entries()
	if err != nil {
		return err
	}
	if err := c.checkAll(entries); err != nil {
		return err
	}
	if err := c.dropTags(); err != nil {
		return err
	}
	return c.evict()
}

// checkAll makes the entries that have the right tag visible to wazero, and removes the
// others.
func (c *Cache) checkAll(entries []entry) error {
	for _, e := range entries {
		if why := c.check(e); why != "" {
			if err := c.refuse(e.Name, why); err != nil {
				return err
			}
			continue
		}
		if err := c.show(e.Name); err != nil {
			return err
		}
	}
	return nil
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

// Take adds an entry that another process made in the directory work.
func (c *Cache) Take(ctx context.Context, sum [sha256.Size]byte, work, name string) error {
	return c.locked(ctx, func() error {
		if err := c.add(name, filepath.Join(work, name)); err != nil {
			return err
		}
		return replaceFile(c.modulePath(sum), []byte(name))
	})
}

// add moves a finished file into the cache. If another process has added the entry, its
// file stays: the compiler does not produce the same bytes every time, and the tag
// belongs to that file. The tag is written first, because without the entry it has no
// effect.
func (c *Cache) add(name, path string) error {
	to := filepath.Join(c.Dir, name)
	if err := os.Mkdir(filepath.Dir(to), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	has := false
	if info, err := os.Lstat(to); err == nil {
		if why := c.check(entry{name, info}); why == "" {
			has = true
		} else if err := c.refuse(name, why); err != nil {
			return err
		}
	}
	if !has {
		mac, err := c.mac(name, path)
		if err != nil {
			return err
		}
		if err := replaceFile(c.tagPath(name), mac); err != nil {
			return err
		}
		if err := os.Rename(path, to); err != nil {
			return err
		}
	}
	return c.show(name)
}

// show makes an entry of the cache, which has been checked, visible to wazero: by a link in
// the directory of this process, or a copy where links cannot be made.
func (c *Cache) show(name string) error {
	from, to := filepath.Join(c.Dir, name), filepath.Join(c.own.Path, name)
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	link := to + unfinished
	err := errors.Join(remove(link), os.Symlink(from, link))
	if err == nil {
		err = os.Rename(link, to)
	}
	if err != nil {
		content, rerr := os.ReadFile(from)
		if rerr == nil {
			rerr = replaceFile(to, content)
		}
		if rerr != nil {
			return errors.Join(err, rerr)
		}
	}
	c.known[name] = true
	return nil
}

// made lists what wazero has written into the directory of this process and the cache does
// not have, because it is new or another process has removed it.
func (c *Cache) made() ([]string, error) {
	entries, err := list(c.own.Path)
	var names []string
	for _, e := range entries {
		if !e.info.Mode().IsRegular() {
			continue // a link of show
		}
		if _, err := os.Lstat(filepath.Join(c.Dir, e.Name)); !c.known[e.Name] || err != nil {
			names = append(names, e.Name)
		}
	}
	return names, err
}

func (c *Cache) modulePath(sum [sha256.Size]byte) string {
	return filepath.Join(c.Dir, Modules, hex.EncodeToString(sum[:]))
}

// check returns why an entry must not be executed, or "" if it may be.
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
	mac, err := c.mac(e.Name, filepath.Join(c.Dir, e.Name))
	if err != nil {
		return "cannot be read: " + err.Error()
	}
	if !hmac.Equal(tag, mac) {
		return "does not match its tag"
	}
	return ""
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
		switch {
		case strings.HasPrefix(d.Name(), oldWorkDirs):
			_ = os.RemoveAll(filepath.Join(c.Dir, d.Name())) // retried at the next start
			continue
		case !strings.HasPrefix(d.Name(), EntryDirs):
			continue
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		if why := unfit(info, fs.ModeDir); why != "" {
			if err := c.refuse(d.Name(), why); err != nil {
				return err
			}
		}
	}
	return nil
}

// Entries lists the entries of the cache, and removes unfinished ones.
func (c *Cache) Entries() ([]entry, error) {
	left, err := filepath.Glob(filepath.Join(c.Dir, EntryDirs+"*", "*"+unfinished))
	if err != nil {
		return nil, err
	}
	for _, path := range left {
		_ = os.Remove(path) // retried the next time
	}
	return list(c.Dir)
}

// list lists the entries below a directory, without unfinished ones.
func list(dir string) (all []entry, err error) {
	dirs, err := filepath.Glob(filepath.Join(dir, EntryDirs+"*"))
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		files, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if strings.HasSuffix(f.Name(), unfinished) {
				continue
			}
			info, err := f.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue
			} else if err != nil {
				return nil, err
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
func (c *Cache) evict() error {
	entries, err := c.Entries()
	if err != nil {
		return err
	}
	var total int64
	for _, e := range entries {
		total += e.info.Size()
	}
	slices.SortFunc(entries, func(a, b entry) int { return a.info.ModTime().Compare(b.info.ModTime()) })
	for _, e := range entries {
		if total <= cacheBytes {
			return nil
		}
		for _, path := range []string{filepath.Join(c.Dir, e.Name), c.tagPath(e.Name), filepath.Join(c.own.Path, e.Name)} {
			if err := remove(path); err != nil {
				return err
			}
		}
		delete(c.known, e.Name)
		total -= e.info.Size()
	}
	return nil
}

// remove removes a file, which may be missing.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
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
