package files

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/seed47132306/terrarium/abi"
)

// A sink remembers the ids in the last part of a file: at least tailBytes and tailLines,
// but at most tailMost and one line. This part has room for all messages that can be in
// the file before their acknowledgement is in the log of the session, even for messages
// of the largest size.
const (
	tailBytes = 8 << 20
	tailLines = 256
	tailMost  = 256 << 20
	tailBlock = 64 << 10
	// headOfLine is enough for the id of a line and what precedes it.
	headOfLine = 16 << 10
)

// tail reads the ids at the end of the file. It removes an incomplete last line, which a
// killed process has left: its message is delivered again.
func (s *sink) tail(file *os.File) (map[string]bool, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &abi.Error{Code: abi.InvalidArgument, Message: "it is not a regular file"}
	}
	start, err := tailStart(file, info.Size())
	if err != nil {
		return nil, err
	}
	ids := map[string]bool{}
	r := bufio.NewReaderSize(io.NewSectionReader(file, start, info.Size()-start), tailBlock)
	for {
		head, size, whole, err := lineHead(r)
		switch {
		case err != nil:
			return nil, err
		case whole:
			start += size
			if id := idOf(head); id != "" {
				ids[id] = true
			}
			continue
		case size == 0:
			return ids, nil
		case s.Format == "text":
			_, err := file.Write([]byte{'\n'}) // the line may be from any program
			return nil, err
		case !bytes.HasPrefix(head, recordStart[:min(len(head), len(recordStart))]):
			return nil, &abi.Error{Code: abi.Conflict, Message: "the file ends with an incomplete line that this sink has not written", Remedy: "name a file that only this sink writes"}
		}
		return ids, file.Truncate(start)
	}
}

var recordStart = []byte(`{"channel":`)

// tailStart finds the start of the first line of the tail of a file, from its end.
func tailStart(file io.ReaderAt, size int64) (int64, error) {
	block := make([]byte, tailBlock)
	lines := 0
	for at := size; at > 0; {
		part := block[:min(at, tailBlock)]
		at -= int64(len(part))
		if _, err := file.ReadAt(part, at); err != nil {
			return 0, err
		}
		for i := len(part) - 1; i >= 0; i-- {
			if part[i] != '\n' {
				continue
			}
			lines++
			start := at + int64(i) + 1
			if has := size - start; has >= tailBytes && lines > tailLines || has >= tailMost {
				return start, nil
			}
		}
	}
	return 0, nil
}

// lineHead reads a line, and returns its beginning and its size. A last line may lack its
// newline; it is not whole.
func lineHead(r *bufio.Reader) (head []byte, size int64, whole bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		size += int64(len(part))
		head = append(head, part[:min(len(part), headOfLine-len(head))]...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return head, size, false, nil
		default:
			return head, size, true, err
		}
	}
}

// idOf returns the id in the beginning of a line, or nothing.
func idOf(head []byte) string {
	d := json.NewDecoder(bytes.NewReader(head))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return ""
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return ""
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return ""
		}
		if name == "id" {
			var id string
			_ = json.Unmarshal(value, &id) // another type is no id
			return id
		}
	}
	return ""
}
