package files

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// followed reads a file that grows. At its end it waits for more. It ends when another file
// has taken the path, or when the file was cut off, as log rotation does.
type followed struct {
	stop <-chan struct{} // ends reading
	path string
	file *os.File
	read int64
}

// Read implements io.Reader.
func (f *followed) Read(p []byte) (int, error) {
	for {
		n, err := f.file.Read(p)
		f.read += int64(n)
		if n > 0 || !errors.Is(err, io.EOF) {
			return n, err
		}
		over, err := f.over()
		if err != nil {
			return 0, err
		}
		if over { // what was written before the other file took the path is still to be read
			n, err := f.file.Read(p)
			f.read += int64(n)
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

// over reports whether nothing will be added to the file.
func (f *followed) over() (bool, error) {
	mine, err := f.file.Stat()
	if err != nil {
		return false, err
	}
	now, err := os.Stat(f.path)
	if err != nil {
		return false, nil // it is between its removal and the next one
	}
	return mine.Size() < f.read || !os.SameFile(mine, now), nil
}

// pollEvery is the interval at which a file that is followed is looked at.
const pollEvery = 200 * time.Millisecond

// Follow takes the lines of the file at a path, and of those that take the path later, until
// ctx ends. It waits for a file that does not exist.
func (l *Lines) Follow(ctx context.Context, path string) error {
	for fresh := false; ; fresh = true {
		file, err := openAgain(ctx, path, fresh)
		if err != nil {
			return l.ended(ctx, err)
		}
		err = l.followOne(ctx, path, file, fresh)
		file.Close()
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// openAgain opens a file, and waits until there is one. What has taken the place of a
// followed file, and is not a file itself, is not there either.
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

// followOne takes the lines of one file. A fresh file has taken the path while it was
// followed, so no earlier run has read it.
func (l *Lines) followOne(ctx context.Context, path string, file *os.File, fresh bool) error {
	r := bufio.NewReaderSize(&followed{stop: ctx.Done(), path: path, file: file}, headBytes)
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
	producer, seen := identifyFile(head, info, known, l.Now())
	return l.take(ctx, r, producer, seen)
}

// identifyFile finds the producer of a followed file, and how many of its bytes were taken
// in before. Its beginning may be that of many files, such as a line that a program writes
// at its start. So the identity of the file in its file system counts too and, as that may
// be used again for a later file, the time when it was first read.
func identifyFile(head []byte, info os.FileInfo, known map[string]uint64, now time.Time) (producer string, seen uint64) {
	prefix := "file:" + fileIdentity(info) + ":"
	names := make([]string, 0, len(known))
	for name := range known {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	age := func(name string) int64 {
		text, _, _ := strings.Cut(strings.TrimPrefix(name, prefix), ":")
		n, _ := strconv.ParseInt(text, 10, 64) // 0 for a name of another form
		return n
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(age(b), age(a)) })
	for _, name := range names {
		_, text, _ := strings.Cut(strings.TrimPrefix(name, prefix), ":")
		first, _, ok := parseProducer(text)
		if ok && first.matches(head) && known[name] <= uint64(info.Size()) {
			return name, known[name]
		}
	}
	return fmt.Sprintf("%s%d:%s", prefix, now.UnixNano(), producerName(head)), 0
}
