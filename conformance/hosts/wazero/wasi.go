package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"unicode/utf16"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/seed47132306/terrarium/abi"
)

type signature struct{ params, results []api.ValueType }

// The errors of WASI that the host returns.
const (
	errnoSuccess = 0
	errnoBadf    = 8
	errnoDquot   = 19
	errnoFault   = 21
	errnoInval   = 28
)

// provide makes the modules that guests may import.
func (w *world) provide(ctx context.Context) error {
	contract, env := w.runtime.NewHostModuleBuilder(abi.ImportModule), w.runtime.NewHostModuleBuilder("env")
	for _, f := range abi.Functions {
		s := signature{results: []api.ValueType{api.ValueType(f.Result)}}
		for _, p := range f.Params {
			s.params = append(s.params, api.ValueType(p.Type))
		}
		w.provided[abi.ImportModule+"."+f.Name] = s
		contract.NewFunctionBuilder().WithGoModuleFunction(hostcall(f), s.params, s.results).Export(f.Name)
	}
	i32 := api.ValueTypeI32
	s := signature{params: []api.ValueType{i32, i32, i32, i32}}
	w.provided["env.abort"] = s
	env.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(abort), s.params, nil).Export("abort")
	if _, err := contract.Instantiate(ctx); err != nil {
		return err
	}
	if _, err := env.Instantiate(ctx); err != nil {
		return err
	}
	// The types are those of wazero's WASI, which is not confined and is never instantiated.
	types, err := wasi_snapshot_preview1.NewBuilder(w.runtime).Compile(ctx)
	if err != nil {
		return err
	}
	wasi := w.runtime.NewHostModuleBuilder(wasi_snapshot_preview1.ModuleName)
	for name, f := range types.ExportedFunctions() {
		s := signature{f.ParamTypes(), f.ResultTypes()}
		w.provided[wasi_snapshot_preview1.ModuleName+"."+name] = s
		wasi.NewFunctionBuilder().WithGoModuleFunction(confined(name), s.params, s.results).Export(name)
	}
	_, err = wasi.Instantiate(ctx)
	return err
}

// abort is AssemblyScript's; its strings are in UTF-16, after their length in bytes.
func abort(ctx context.Context, mod api.Module, stack []uint64) {
	_, mem := caller(ctx, mod)
	at := uint32(stack[0])
	length, _ := mem.ReadUint32Le(at - 4)
	text, _ := mem.Read(at, min(length, 512)&^1)
	units := make([]uint16, len(text)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(text[2*i:])
	}
	panic(fail(abi.Trapped, "the guest aborted: %s", string(utf16.Decode(units))))
}

// wasi has the functions that do more than to say that there is no such descriptor.
var wasi = map[string]func(c *creature, mem api.Memory, p []uint64) uint64{
	"args_get": nothing, "environ_get": nothing, "sched_yield": nothing, "args_sizes_get": none, "environ_sizes_get": none,
	"clock_res_get":  func(_ *creature, mem api.Memory, p []uint64) uint64 { return fault(mem.WriteUint64Le(uint32(p[1]), 1)) },
	"clock_time_get": wasiTime, "fd_read": wasiRead, "fd_write": wasiWrite, "poll_oneoff": wasiPoll,
	"random_get": func(c *creature, mem api.Memory, p []uint64) uint64 {
		b, ok := mem.Read(uint32(p[0]), uint32(p[1]))
		c.draw(b)
		return fault(ok)
	},
}

// confined returns a function of WASI as wazero calls it.
func confined(name string) api.GoModuleFunc {
	do := wasi[name]
	return func(ctx context.Context, mod api.Module, stack []uint64) {
		c, mem := caller(ctx, mod)
		within := c.count()
		switch {
		case name == "proc_exit":
			panic(fail(abi.Trapped, "the guest exited with status %d", uint32(stack[0])))
		case !within:
			stack[0] = errnoDquot
		case do != nil:
			stack[0] = do(c, mem, stack)
		case len(stack) > 0:
			stack[0] = errnoBadf
		}
	}
}

func fault(ok bool) uint64 {
	if ok {
		return errnoSuccess
	}
	return errnoFault
}

func nothing(*creature, api.Memory, []uint64) uint64 { return errnoSuccess }

// none is for the sizes of arguments and environment.
func none(_ *creature, mem api.Memory, p []uint64) uint64 {
	return fault(mem.WriteUint32Le(uint32(p[0]), 0) && mem.WriteUint32Le(uint32(p[1]), 0))
}

// clock returns the time of the realtime clock or of the monotonic one.
func (c *creature) clock(id uint32) (int64, bool) {
	switch now := c.time(); id {
	case 0:
		return now, true
	case 1:
		c.monotonic = max(c.monotonic, now)
		return c.monotonic, true
	}
	return 0, false
}

func wasiTime(c *creature, mem api.Memory, p []uint64) uint64 {
	now, ok := c.clock(uint32(p[0]))
	if !ok {
		return errnoInval
	}
	return fault(mem.WriteUint64Le(uint32(p[2]), uint64(now)))
}

func wasiRead(_ *creature, mem api.Memory, p []uint64) uint64 {
	if uint32(p[0]) != 0 {
		return errnoBadf
	}
	return fault(mem.WriteUint32Le(uint32(p[3]), 0))
}

// wasiWrite logs lines; a line that has not ended is kept until the call into the guest ends.
func wasiWrite(c *creature, mem api.Memory, p []uint64) uint64 {
	descriptor := uint32(p[0])
	if descriptor != 1 && descriptor != 2 {
		return errnoBadf
	}
	var all []byte
	for i := range min(uint32(p[2]), 1024) {
		at, ok := mem.ReadUint32Le(uint32(p[1]) + 8*i)
		length, ok2 := mem.ReadUint32Le(uint32(p[1]) + 8*i + 4)
		part, ok3 := mem.Read(at, length)
		if !ok || !ok2 || !ok3 && length > 0 {
			return errnoFault
		}
		if all = append(all, part...); int64(len(all)) > c.limit["message"] {
			break // a partial write
		}
	}
	if !mem.WriteUint32Le(uint32(p[3]), uint32(len(all))) {
		return errnoFault
	}
	for line := range bytes.Lines(all) {
		kept := &c.turn.lines[descriptor]
		if room := int(c.limit["log_bytes"]) + 1 - len(*kept); room > 0 { // one more, so that the line is cut
			*kept = append(*kept, bytes.TrimSuffix(line[:min(len(line), room)], []byte("\n"))...)
		}
		if line[len(line)-1] == '\n' {
			*kept = append(*kept, '\n')
			c.endLine(int(descriptor))
		}
	}
	return errnoSuccess
}

// endLine logs what a descriptor has been written, if that is anything.
func (c *creature) endLine(descriptor int) {
	if line := c.turn.lines[descriptor]; len(line) > 0 {
		_ = c.log(abi.Level(descriptor), bytes.TrimSuffix(line, []byte("\n"))) // what is beyond the limit is lost
		c.turn.lines[descriptor] = nil
	}
}

// wasiPoll does not wait: the monotonic clock advances to the first time that is due.
func wasiPoll(c *creature, mem api.Memory, p []uint64) uint64 {
	count := uint32(p[2])
	if count == 0 {
		return errnoInval
	}
	if uint64(count)*48 > uint64(mem.Size()) {
		return errnoFault
	}
	in, ok := mem.Read(uint32(p[0]), 48*count)
	out, ok2 := mem.Read(uint32(p[1]), 32*count)
	if !ok || !ok2 {
		return errnoFault
	}
	in = bytes.Clone(in)
	due, others := make([]int64, count), 0
	for i := range due {
		s := in[48*i:]
		if s[8] != 0 {
			others++
			continue
		}
		now, known := c.clock(binary.LittleEndian.Uint32(s[16:]))
		if !known {
			return errnoInval
		}
		wait := binary.LittleEndian.Uint64(s[24:])
		if s[40]&1 != 0 { // a time, not a duration
			wait = uint64(max(0, int64(min(wait, 1<<62))-now))
		}
		due[i] = int64(min(wait, 1<<62))
	}
	first := int64(1 << 62)
	for i, d := range due {
		if in[48*i+8] == 0 {
			first = min(first, d)
		}
	}
	if others > 0 {
		first = 0 // the descriptors are ready at once
	}
	c.monotonic = max(c.monotonic, c.time())
	c.monotonic += min(first, 1<<62-min(c.monotonic, 1<<62))
	events := uint32(0)
	for i, d := range due {
		if d > first {
			continue
		}
		event := make([]byte, 32)
		copy(event, in[48*i:48*i+8])
		event[10] = in[48*i+8]
		copy(out[32*events:], event)
		events++
	}
	return fault(mem.WriteUint32Le(uint32(p[3]), events))
}
