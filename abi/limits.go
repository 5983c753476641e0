package abi

import (
	"encoding/json"
	"fmt"
	"time"
)

// Limits bounds what one creature may use. The zero value of a field means the
// default of [DefaultLimits]. Every error that a limit causes has the code
// [LimitExceeded] (or [TooLarge] for a single item) and names the limit as in
// [LimitTable].
type Limits struct {
	Memory      int64         `json:"memory,omitempty"`       // bytes of linear memory
	Fuel        int64         `json:"fuel,omitempty"`         // units per turn
	Stack       int64         `json:"stack,omitempty"`        // bytes of nested calls
	Deadline    time.Duration `json:"deadline,omitempty"`     // wall-clock time per turn
	Message     int64         `json:"message,omitempty"`      // bytes of one message, headers included
	Sends       int           `json:"sends,omitempty"`        // messages sent per turn
	SendBytes   int64         `json:"send_bytes,omitempty"`   // bytes sent per turn
	Output      int64         `json:"output,omitempty"`       // bytes of output per turn
	LogLines    int           `json:"log_lines,omitempty"`    // log lines per turn
	LogBytes    int64         `json:"log_bytes,omitempty"`    // bytes of log per turn
	StateKey    int64         `json:"state_key,omitempty"`    // bytes of one state key
	StateValue  int64         `json:"state_value,omitempty"`  // bytes of one state value
	State       int64         `json:"state,omitempty"`        // bytes of all state of a creature, keys included, and 32 for each
	StateWrites int           `json:"state_writes,omitempty"` // state writes and deletes per turn
	Calls       int64         `json:"calls,omitempty"`        // hostcalls per turn
	Handles     int           `json:"handles,omitempty"`      // channel handles of one instance
	Timers      int           `json:"timers,omitempty"`       // timers of one creature
	Requests    int           `json:"requests,omitempty"`     // requests of one creature that wait for an answer
	TimerBytes  int64         `json:"timer_bytes,omitempty"`  // bytes of all timers of a creature, names included
	Tools       int           `json:"tools,omitempty"`        // tool calls per turn
	Table       int64         `json:"table,omitempty"`        // elements of all tables together
	Mailbox     int           `json:"mailbox,omitempty"`      // deliveries held in memory for one creature
	StoreRate   int64         `json:"store_rate,omitempty"`   // bytes per second that a creature adds to its store
	TimerRate   int           `json:"timer_rate,omitempty"`   // deliveries of timers per second
}

const (
	kib = 1 << 10
	mib = 1 << 20
)

// DefaultLimits are safe for hostile code: a creature that reaches all of them
// costs a bounded share of a server, and a small one.
var DefaultLimits = Limits{
	Memory:      64 * mib,
	Fuel:        1_000_000_000,
	Stack:       4 * mib,
	Deadline:    time.Second,
	Message:     1 * mib,
	Sends:       1024,
	SendBytes:   8 * mib,
	Output:      1 * mib,
	LogLines:    256,
	LogBytes:    64 * kib,
	StateKey:    512,
	StateValue:  1 * mib,
	State:       16 * mib,
	StateWrites: 4096,
	Calls:       1_000_000,
	Handles:     4096,
	Timers:      256,
	Requests:    1024,
	TimerBytes:  1 * mib,
	Tools:       64,
	Table:       1 << 20,
	Mailbox:     1024,
	StoreRate:   32 * mib,
	TimerRate:   1000,
}

// LimitInfo describes one limit.
type LimitInfo struct {
	Name string // as in the JSON form of [Limits] and in error messages
	Unit string // the unit counted: "bytes", "messages", ...
	Doc  string
}

// LimitTable is the table of limits in the order of the fields of [Limits].
var LimitTable = []LimitInfo{
	{"memory", "bytes", "linear memory"},
	{"fuel", "units", "fuel per turn"},
	{"stack", "bytes", "the frames of nested calls"},
	{"deadline", "time", "wall-clock time per turn"},
	{"message", "bytes", "one message, headers included"},
	{"sends", "messages", "messages sent per turn"},
	{"send_bytes", "bytes", "all messages sent per turn"},
	{"output", "bytes", "output per turn"},
	{"log_lines", "lines", "log lines per turn"},
	{"log_bytes", "bytes", "log text per turn"},
	{"state_key", "bytes", "one state key"},
	{"state_value", "bytes", "one state value"},
	{"state", "bytes", "all state of a creature: keys, values, and 32 bytes for each key"},
	{"state_writes", "writes", "state writes and deletes per turn"},
	{"calls", "calls", "hostcalls per turn"},
	{"handles", "handles", "channel handles of one instance"},
	{"timers", "timers", "timers of one creature"},
	{"requests", "requests", "requests of a creature that wait for an answer"},
	{"timer_bytes", "bytes", "names and payloads of all timers of a creature"},
	{"tools", "calls", "tool calls per turn"},
	{"table", "elements", "elements of all tables together"},
	{"mailbox", "deliveries", "deliveries held in memory for one creature"},
	{"store_rate", "bytes", "data that a creature adds to its store per second, and up to ten times as much at once"},
	{"timer_rate", "deliveries", "deliveries of a creature's timers per second"},
}

// MaxModuleBytes is the size of the largest accepted module, in bytes.
const MaxModuleBytes = 64 * mib

// MaxManifestBytes is the size of the largest accepted manifest, in bytes.
const MaxManifestBytes = 64 * kib

// PageBytes is the size of one page of linear memory.
const PageBytes = 64 * kib

// limitsJSON has the fields of Limits, but none of its methods.
type limitsJSON Limits

// MarshalJSON writes the deadline as a string such as "200ms".
func (l Limits) MarshalJSON() ([]byte, error) {
	v := struct {
		limitsJSON
		Deadline string `json:"deadline,omitempty"`
	}{limitsJSON: limitsJSON(l)}
	if l.Deadline != 0 {
		v.Deadline = l.Deadline.String()
	}
	return json.Marshal(v)
}

// UnmarshalJSON reads the form that MarshalJSON writes.
func (l *Limits) UnmarshalJSON(b []byte) error {
	v := struct {
		*limitsJSON
		Deadline string `json:"deadline"`
	}{limitsJSON: (*limitsJSON)(l)}
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	if v.Deadline == "" {
		return nil
	}
	var err error
	if l.Deadline, err = time.ParseDuration(v.Deadline); err != nil {
		return fmt.Errorf("deadline: %w", err)
	}
	return nil
}
