// Package watch notices changes of files. A [Watcher] says that something in some folders
// has changed, and a [Set] of files says whether that concerns it.
package watch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/fsnotify/fsnotify"

	"github.com/seed47132306/terrarium/abi"
)

// Watcher watches folders. It does not watch files: an editor that renames a new file over
// the old one would leave it with a file that no longer has a name.
type Watcher struct {
	events *fsnotify.Watcher
	dirs   map[string]fs.FileInfo
	change chan struct{}
	done   chan struct{}
}

// New starts a watcher without folders. The caller closes it.
func New() (*Watcher, error) {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, refuse("", err)
	}
	w := &Watcher{events: events, dirs: map[string]fs.FileInfo{}, change: make(chan struct{}, 1), done: make(chan struct{})}
	go w.pass()
	return w, nil
}

// pass merges all that happens until it is read into one value.
func (w *Watcher) pass() {
	defer close(w.done)
	for {
		select {
		case _, open := <-w.events.Events:
			if !open {
				return
			}
		case _, open := <-w.events.Errors: // events may be lost
			if !open {
				return
			}
		}
		w.Again()
	}
}

// Changed gets a value after something in the folders has changed: one for all changes that
// happen until it is received.
func (w *Watcher) Changed() <-chan struct{} { return w.change }

// Again makes Changed get another value, for a change that was received but not examined.
func (w *Watcher) Again() {
	select {
	case w.change <- struct{}{}:
	default:
	}
}

// Watch watches these folders, without the folders in them, and no others. For a folder
// that does not exist, the nearest one around it that does is watched, in which it or its
// parent will appear. A folder that cannot be read is left out. Watch reports whether there
// are new ones, even under a name that is watched: they may have changed before they were
// watched. It must not be called by
// several goroutines at the same time.
func (w *Watcher) Watch(dirs []string) (added bool, err error) {
	wanted := map[string]fs.FileInfo{}
	watched := w.events.WatchList() // without those that were removed
	for _, dir := range dirs {
		// A folder that was replaced by another of the same name has to be added again,
		// and adding one twice changes nothing.
		info, err := w.add(dir, wanted)
		for errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir {
			dir = filepath.Dir(dir)
			info, err = w.add(dir, wanted)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
			continue // Set.Sum leaves out the files of such a folder too
		case err != nil:
			return added, refuse(dir, err)
		case info == nil:
			continue
		}
		wanted[dir] = info
		before := w.dirs[dir]
		added = added || before == nil || !os.SameFile(before, info) || !slices.Contains(watched, filepath.Clean(dir))
	}
	for dir := range w.dirs {
		if wanted[dir] == nil {
			_ = w.events.Remove(dir) // it may no longer exist
		}
	}
	for dir := range wanted { // the removed name may have been another one of the same folder
		if w.dirs[dir] == nil {
			_ = w.events.Add(dir) // if it was removed meanwhile, the next call finds that
		}
	}
	w.dirs = wanted
	return added, nil
}

// add watches a folder. It returns nothing for one that is wanted under another name: the
// system has one watch for a folder, which has the name that was added last.
func (w *Watcher) add(dir string, wanted map[string]fs.FileInfo) (fs.FileInfo, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	for _, other := range wanted {
		if os.SameFile(other, info) {
			return nil, nil
		}
	}
	return info, w.events.Add(dir)
}

// Close stops watching, and waits until it has stopped.
func (w *Watcher) Close() error {
	err := w.events.Close()
	<-w.done
	return err
}

func refuse(dir string, err error) error {
	e := &abi.Error{Code: abi.Unavailable, Message: "the system does not watch files", Err: err,
		Remedy: "raise the number of files that may be watched; on Linux: sysctl fs.inotify.max_user_watches fs.inotify.max_user_instances"}
	if dir != "" {
		e.Message = fmt.Sprintf("%s cannot be watched", dir)
	}
	return e
}
