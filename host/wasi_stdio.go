package host

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"

	"github.com/seed47132306/terrarium/abi"
)

// The open descriptors.
const (
	stdin  = 0
	stdout = 1
	stderr = 2
)

// wasiStdio returns e for the open descriptors.
func wasiStdio(e errno) wasiCall {
	return func(_ *call, p []uint64) errno {
		if uint32(p[0]) > stderr {
			return errnoBadf
		}
		return e
	}
}

const filetypeCharacterDevice = 2

// wasiFdstat describes the three open descriptors like terminals: readable or
// writable, without a position.
func wasiFdstat(c *call, p []uint64) errno {
	const (
		size        = 24
		rights      = 8 // offset of the rights
		rightsRead  = 1 << 1
		rightsWrite = 1 << 6
	)
	fd := uint32(p[0])
	if fd > stderr {
		return errnoBadf
	}
	b, ok := c.memory.Read(uint32(p[1]), size)
	if !ok {
		return errnoFault
	}
	clear(b)
	b[0] = filetypeCharacterDevice
	may := uint64(rightsWrite)
	if fd == stdin {
		may = rightsRead
	}
	binary.LittleEndian.PutUint64(b[rights:], may)
	return errnoSuccess
}

func wasiFilestat(c *call, p []uint64) errno {
	const (
		size     = 64
		filetype = 16 // offset of the file type
	)
	if uint32(p[0]) > stderr {
		return errnoBadf
	}
	b, ok := c.memory.Read(uint32(p[1]), size)
	if !ok {
		return errnoFault
	}
	clear(b)
	b[filetype] = filetypeCharacterDevice
	return errnoSuccess
}

// wasiRead is fd_read. Standard input is always at its end.
func wasiRead(c *call, p []uint64) errno {
	if uint32(p[0]) != stdin {
		return errnoBadf
	}
	return putAll(c.memory.WriteUint32Le(uint32(p[3]), 0))
}

func wasiWrite(c *call, p []uint64) errno {
	return c.write(uint32(p[0]), p[1], p[2], p[3])
}

func wasiPwrite(c *call, p []uint64) errno {
	return c.write(uint32(p[0]), p[1], p[2], p[4]) // a terminal ignores the position
}

// write logs what the guest writes to standard output or standard error.
func (c *call) write(fd uint32, iovs, count, result uint64) errno {
	if fd != stdout && fd != stderr {
		return errnoBadf
	}
	const iovBytes = 8
	n := uint32(count)
	if uint64(n)*iovBytes > uint64(c.memory.Size()) {
		return errnoFault
	}
	c.personal = true
	list, ok := c.memory.Read(uint32(iovs), n*iovBytes)
	if !ok {
		return errnoFault
	}
	var total uint64
	for ; len(list) > 0; list = list[iovBytes:] {
		b, ok := c.memory.Read(binary.LittleEndian.Uint32(list), binary.LittleEndian.Uint32(list[4:]))
		if !ok {
			return errnoFault
		}
		if total += uint64(len(b)); total > math.MaxInt32 {
			return errnoInval // many vectors may refer to the same memory
		}
		c.spend(costVector + int64(len(b))/bytesPerUnit) // charged at once, because it may be much
		c.print(fd, b)
	}
	return putAll(c.memory.WriteUint32Le(uint32(result), uint32(total)))
}

// maxLine is the longest line assembled from several writes, in bytes; a
// longer one is logged in pieces.
const maxLine = 4096

// lineBuffer holds the start of a line whose end has not been written yet.
type lineBuffer []byte

// print logs whole lines and keeps the rest for the next write. When a line is
// refused, the rest is dropped with it: there may be any number of lines.
func (c *call) print(fd uint32, b []byte) {
	buf := &c.wasi.output[fd-stdout]
	for len(b) > 0 {
		piece, whole := b, false
		if end := bytes.IndexByte(b, '\n'); end >= 0 {
			piece, whole = b[:end], true
		}
		fits := min(len(piece), maxLine-len(*buf))
		*buf = append(*buf, piece[:fits]...)
		switch {
		case fits < len(piece):
			b = b[fits:]
		case whole:
			b = b[fits+1:]
		default:
			return
		}
		c.spend(costHostcall)
		if !c.logLine(fd) {
			return
		}
	}
}

// logLine logs the assembled line. It returns false if the turn's limits
// refuse the line; the line is dropped, because the guest could do nothing
// about it.
func (c *call) logLine(fd uint32) bool {
	buf := &c.wasi.output[fd-stdout]
	line := bytes.TrimSuffix(*buf, []byte("\r"))
	level := abi.LevelInfo
	if fd == stderr {
		level = abi.LevelWarn
		if c.words == "" {
			c.say(line) // runtimes print the cause first and the stack after it
		}
	}
	code := c.turn.Log(level, line)
	*buf = (*buf)[:0]
	return code == abi.OK
}

// flushOutput logs lines that had no end when the call ended.
func (c *call) flushOutput() {
	for fd := uint32(stdout); fd <= stderr; fd++ {
		if len(c.wasi.output[fd-stdout]) > 0 {
			c.logLine(fd)
		}
	}
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }
