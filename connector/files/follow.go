package files

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// followed reads a file that grows. At the end of the file, it waits for more. It ends
// when another file has taken the path, or when the file was truncated; log rotation does
// either.
type followed struct {
	stop <-chan struct{} // ends reading
	path string
	file *os.File
	read int64
	// over says that what was read is no longer in the file.
	over bool
	last []byte // the bytes before read, without a gap: lastBytes or some more, if there are as many
}

// lastBytes are compared to notice that a file was rewritten, or has come back to its path.
const lastBytes = 1 << 10

// note keeps the end of what was read.
func (f *followed) note(b []byte) {
	f.read += int64(len(b))
	if len(b) >= lastBytes {
		f.last = append(f.last[:0], b[len(b)-lastBytes:]...)
		return
	}
	if f.last = append(f.last, b...); len(f.last) > 2*lastBytes {
		f.last = append(f.last[:0], f.last[len(f.last)-lastBytes:]...)
	}
}

// continues reports whether a file has these bytes before a position.
func continues(file *os.File, last []byte, at int64) bool {
	is := make([]byte, len(last))
	n, err := file.ReadAt(is, at-int64(len(last)))
	return n == len(is) && (err == nil || errors.Is(err, io.EOF)) && bytes.Equal(is, last)
}

// Read implements io.Reader.
func (f *followed) Read(p []byte) (int, error) {
	for {
		n, same, err := f.next(p)
		if !same {
			f.over = true
			return 0, io.EOF
		}
		if n > 0 || !errors.Is(err, io.EOF) {
			return n, err
		}
		end, err := f.end()
		if err != nil {
			return 0, err
		}
		switch end {
		case rewritten:
			f.over = true
			return 0, io.EOF
		case moved: // what was written before another file took the path is still to be read
			if n, same, err = f.next(p); !same {
				f.over = true
				return 0, io.EOF
			}
			return n, err
		}
		wait := time.NewTimer(pollEvery)
		select {
		case <-wait.C:
		case <-f.stop:
			wait.Stop()
			return 0, context.Canceled
		}
	}
}

// next reads what follows, if it is still the same content: a file can be truncated and become
// longer again between any two reads, and is then to be read from its start.
func (f *followed) next(p []byte) (n int, same bool, err error) {
	n, err = f.file.Read(p)
	if n > 0 && !continues(f.file, f.last, f.read) {
		return 0, false, nil
	}
	f.note(p[:n])
	return n, true, err
}

// ending says whether anything may still be added to a file and, if not, why.
type ending int

const (
	open      ending = iota // something may be added
	moved                   // another file has taken its path
	rewritten               // it is shorter than what was read
)

// end checks whether anything may still be added to the file.
func (f *followed) end() (ending, error) {
	mine, err := f.file.Stat()
	if err != nil {
		return open, err
	}
	if mine.Size() < f.read {
		return rewritten, nil
	}
	now, err := os.Stat(f.path)
	if err == nil && !os.SameFile(mine, now) {
		return moved, nil
	}
	return open, nil // or it was removed, and the next one is not there yet
}

// pollEvery is the interval between two checks of a followed file.
const pollEvery = 200 * time.Millisecond

// Follow takes the lines of the file at a path, and of those that take the path later, until
// ctx ends. It waits for a file that does not exist.
func (l *Lines) Follow(ctx context.Context, path string) error {
	var former []formerFile
	for fresh := false; ; fresh = true {
		file, err := openAgain(ctx, path, fresh)
		if err != nil {
			return l.ended(ctx, err)
		}
		if !fresh {
			err = l.rotated(ctx, path, file)
		}
		if err == nil && ctx.Err() == nil {
			err = l.followOne(ctx, path, file, fresh, &former)
		}
		file.Close()
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// openAgain opens a file, and waits until there is one. If something other than a regular
// file has taken the place of a followed file, it waits too.
func openAgain(ctx context.Context, path string, fresh bool) (*os.File, error) {
	for {
		file, err := openRegular(path)
		if !errors.Is(err, os.ErrNotExist) && (!fresh || !errors.Is(err, errNotRegular)) {
			return file, err
		}
		wait := time.NewTimer(pollEvery)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return nil, context.Cause(ctx)
		}
	}
}

var errNotRegular = errors.New("it is not a regular file")

// openRegular opens a file for reading. It does not wait for the other end of a pipe, and what
// it opens is checked after opening: it may have replaced a file.
func openRegular(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// followOne takes the lines of one file. fresh means that the file took the path while
// the path was followed. No earlier run has read such a file, but this run may have read
// it as one of the former files.
func (l *Lines) followOne(ctx context.Context, path string, file *os.File, fresh bool, former *[]formerFile) error {
	f := &followed{stop: ctx.Done(), path: path, file: file}
	r := bufio.NewReaderSize(f, headBytes)
	head, err := peekLine(r)
	if err != nil {
		return l.ended(ctx, err)
	}
	info, err := file.Stat()
	if err != nil {
		return l.ended(ctx, err)
	}
	known := map[string]uint64{}
	if !fresh {
		if known, err = l.Known(); err != nil {
			return err
		}
	}
	producer, seen := l.identifyFile(head, info, known)
	if i := slices.IndexFunc(*former, func(x formerFile) bool { return x.is(file, info) }); i >= 0 {
		producer, seen = (*former)[i].producer, uint64((*former)[i].read)
		*former = slices.Delete(*former, i, i+1)
	}
	err = l.take(ctx, r, producer, seen)
	if err == nil && f.over && ctx.Err() == nil {
		err = l.retire(ctx, info, producer)
	}
	*former = append(*former, formerFile{info, producer, f.read, f.last})
	if len(*former) > mostFormer {
		*former = (*former)[1:]
	}
	return err
}

// formerFile is a file that was at the path before.
type formerFile struct {
	info     os.FileInfo
	producer string
	read     int64
	last     []byte
}

// mostFormer bounds the files that are recognized when they come back to the path.
const mostFormer = 16

func (x *formerFile) is(file *os.File, info os.FileInfo) bool {
	return os.SameFile(x.info, info) && info.Size() >= x.read && continues(file, x.last, x.read)
}

// rotated takes the rest of files that were read at the path in an earlier run, and that
// were renamed since. It looks at files whose names begin with that of the path, as those
// given by log rotation do.
func (l *Lines) rotated(ctx context.Context, path string, current *os.File) error {
	known, err := l.Known()
	if err != nil {
		return err
	}
	now, err := current.Stat()
	if err != nil {
		return l.ended(ctx, err)
	}
	siblings, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil //nolint:nilerr // a folder that may not be listed shows no others
	}
	var infos []os.FileInfo
	for _, s := range siblings {
		if name := s.Name(); name != filepath.Base(path) && strings.HasPrefix(name, filepath.Base(path)) && s.Type().IsRegular() {
			if info, err := s.Info(); err == nil && !os.SameFile(info, now) && hasProducer(known, info) {
				infos = append(infos, info)
			}
		}
	}
	slices.SortFunc(infos, func(a, b os.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, info := range infos {
		if err := l.rest(ctx, filepath.Join(filepath.Dir(path), info.Name()), known); err != nil || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// rest takes what was not read of a renamed file, if it is one that was read before.
func (l *Lines) rest(ctx context.Context, path string, known map[string]uint64) error {
	file, err := openRegular(path)
	if err != nil {
		return nil //nolint:nilerr // it was removed, or may not be read
	}
	defer file.Close()
	return l.feedFile(ctx, file, known, true)
}

func hasProducer(known map[string]uint64, info os.FileInfo) bool {
	for name := range known {
		if strings.HasPrefix(name, prefixOf(info)) {
			return true
		}
	}
	return false
}

// feedFile takes the lines of a file up to its present end; with onlyRest none, unless some of
// them were taken before.
func (l *Lines) feedFile(ctx context.Context, file *os.File, known map[string]uint64, onlyRest bool) error {
	info, err := file.Stat()
	if err != nil {
		return l.ended(ctx, err)
	}
	r := bufio.NewReaderSize(file, headBytes)
	head, err := peekLine(r)
	if err != nil {
		return l.ended(ctx, err)
	}
	producer, seen := l.identifyFile(head, info, known)
	if onlyRest && (seen == 0 || seen >= uint64(info.Size())) {
		return nil
	}
	return l.take(ctx, r, producer, seen)
}

// producersOf returns the producers of a file and of earlier files with the same identity,
// the latest first.
func producersOf(info os.FileInfo, known map[string]uint64) []string {
	var names []string
	for name := range known {
		if strings.HasPrefix(name, prefixOf(info)) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(bornAt(b), bornAt(a)) })
	return names
}

func prefixOf(info os.FileInfo) string { return "file:" + fileIdentity(info) + ":" }

// bornAt returns when the producer of a file was first used, in ns; 0 for a name of another
// form.
func bornAt(producer string) int64 {
	_, rest, _ := strings.Cut(strings.TrimPrefix(producer, "file:"), ":")
	text, _, _ := strings.Cut(rest, ":")
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// retired is the end of the name of a producer that has no lines: those before it belong to
// content that was overwritten.
const retired = ":retired"

// retire records that the content of a file was overwritten, so that a later run does not continue
// in the middle of what is written next. Where files have no identity, nothing is recorded.
func (l *Lines) retire(ctx context.Context, info os.FileInfo, producer string) error {
	if l.Mark == nil || fileIdentity(info) == noIdentity {
		return nil
	}
	return l.Mark(ctx, fmt.Sprintf("%s%d%s", prefixOf(info), l.birth(bornAt(producer)), retired), 1)
}

// birth returns the time of a new producer, in ns: now, but later than other producers, since
// the clock may stand still or be set back.
func (l *Lines) birth(after int64) int64 {
	l.born = max(l.Now().UnixNano(), l.born+1, after+1)
	return l.born
}

// noIdentity is the identity of files where the system has none.
const noIdentity = "0-0"

// identifyFile finds the producer of a file, and how many of its bytes were taken before.
// Many files may have the same beginning, such as a line that a program writes when it
// starts. So the producer also has the identity of the file in its file system. A later file
// may get the same identity, so the producer also has the time when the file was first read,
// and only the latest one counts.
func (l *Lines) identifyFile(head []byte, info os.FileInfo, known map[string]uint64) (producer string, seen uint64) {
	names := producersOf(info, known)
	var latest int64
	if len(names) > 0 {
		latest = bornAt(names[0])
	}
	if fileIdentity(info) != noIdentity {
		names = names[:min(len(names), 1)]
	}
	for _, name := range names {
		_, text, _ := strings.Cut(strings.TrimPrefix(name, prefixOf(info)), ":")
		first, _, ok := parseProducer(text)
		if ok && first.matches(head) && known[name] <= uint64(info.Size()) {
			return name, known[name]
		}
	}
	return fmt.Sprintf("%s%d:%s", prefixOf(info), l.birth(latest), producerName(head)), 0
}
