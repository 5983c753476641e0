package host

import "github.com/seed47132306/terrarium/abi"

// wasiModule is the import module of WASI preview 1. It is confined to the
// turn: its clock, its random bytes and its log. There are no arguments,
// variables, files or sockets.
const wasiModule = "wasi_snapshot_preview1"

// errno is a result of WASI.
type errno uint32

// The results that are used here, by their number in WASI preview 1.
const (
	errnoSuccess errno = 0
	errnoBadf    errno = 8
	errnoDquot   errno = 19
	errnoFault   errno = 21
	errnoInval   errno = 28
	errnoNosys   errno = 52
	errnoNotsup  errno = 58
	errnoSpipe   errno = 70
)

// A wasiCall gets its arguments in wazero's stack form.
type wasiCall func(c *call, p []uint64) errno

// refuseWith makes a function that only returns a result.
func refuseWith(e errno) wasiCall {
	return func(*call, []uint64) errno { return e }
}

// wasiTable is all of WASI preview 1. Functions that need a file return that
// there is no such descriptor, because no directory is open.
var wasiTable = []struct {
	name, params string
	call         wasiCall
}{
	{"args_get", "ii", refuseWith(errnoSuccess)},
	{"args_sizes_get", "ii", wasiSizes},
	{"environ_get", "ii", refuseWith(errnoSuccess)},
	{"environ_sizes_get", "ii", wasiSizes},
	{"clock_res_get", "ii", wasiClockRes},
	{"clock_time_get", "iIi", wasiClockTime},
	{"fd_advise", "iIIi", refuseWith(errnoBadf)},
	{"fd_allocate", "iII", refuseWith(errnoBadf)},
	{"fd_close", "i", wasiStdio(errnoSuccess)},
	{"fd_datasync", "i", wasiStdio(errnoSuccess)},
	{"fd_fdstat_get", "ii", wasiFdstat},
	{"fd_fdstat_set_flags", "ii", wasiStdio(errnoSuccess)},
	{"fd_fdstat_set_rights", "iII", wasiStdio(errnoSuccess)},
	{"fd_filestat_get", "ii", wasiFilestat},
	{"fd_filestat_set_size", "iI", refuseWith(errnoBadf)},
	{"fd_filestat_set_times", "iIIi", refuseWith(errnoBadf)},
	{"fd_pread", "iiiIi", wasiStdio(errnoSpipe)},
	{"fd_prestat_get", "ii", refuseWith(errnoBadf)},
	{"fd_prestat_dir_name", "iii", refuseWith(errnoBadf)},
	{"fd_pwrite", "iiiIi", wasiPwrite},
	{"fd_read", "iiii", wasiRead},
	{"fd_readdir", "iiiIi", refuseWith(errnoBadf)},
	{"fd_renumber", "ii", refuseWith(errnoBadf)},
	{"fd_seek", "iIii", wasiStdio(errnoSpipe)},
	{"fd_sync", "i", wasiStdio(errnoSuccess)},
	{"fd_tell", "ii", wasiStdio(errnoSpipe)},
	{"fd_write", "iiii", wasiWrite},
	{"path_create_directory", "iii", refuseWith(errnoBadf)},
	{"path_filestat_get", "iiiii", refuseWith(errnoBadf)},
	{"path_filestat_set_times", "iiiiIIi", refuseWith(errnoBadf)},
	{"path_link", "iiiiiii", refuseWith(errnoBadf)},
	{"path_open", "iiiiiIIii", refuseWith(errnoBadf)},
	{"path_readlink", "iiiiii", refuseWith(errnoBadf)},
	{"path_remove_directory", "iii", refuseWith(errnoBadf)},
	{"path_rename", "iiiiii", refuseWith(errnoBadf)},
	{"path_symlink", "iiiii", refuseWith(errnoBadf)},
	{"path_unlink_file", "iii", refuseWith(errnoBadf)},
	{"poll_oneoff", "iiii", wasiPoll},
	{"proc_raise", "i", refuseWith(errnoNosys)},
	{"sched_yield", "", refuseWith(errnoSuccess)},
	{"random_get", "ii", wasiRandom},
	{"sock_accept", "iii", refuseWith(errnoNotsup)},
	{"sock_recv", "iiiiii", refuseWith(errnoNotsup)},
	{"sock_send", "iiiii", refuseWith(errnoNotsup)},
	{"sock_shutdown", "ii", refuseWith(errnoNotsup)},
}

// procExit is the one function of WASI without a result.
const procExit = "proc_exit"

// wasiFunctions returns the functions of wasi_snapshot_preview1.
func wasiFunctions() map[string]importable {
	m := map[string]importable{procExit: {sig("i:"), wasiExit}}
	for _, f := range wasiTable {
		m[f.name] = importable{sig(f.params + ":i"), bindWASI(f.call)}
	}
	return m
}

func bindWASI(f wasiCall) func(*call, []uint64) {
	return func(c *call, stack []uint64) {
		defer c.contain()
		result := errnoDquot
		if c.tick() {
			result = f(c, stack)
		}
		c.settle()
		stack[0] = uint64(result)
	}
}

// wasiExit is proc_exit. A creature does not exit by itself, so every status
// is a trap, including 0.
func wasiExit(c *call, stack []uint64) {
	defer c.contain()
	c.flushOutput()
	e := &abi.Error{Code: abi.Trapped, Message: "the guest exited with status " + decimal(uint64(uint32(stack[0]))),
		Remedy: "return from " + c.phase.String() + " instead of exiting"}
	if c.words != "" {
		e.Message += "; it said: " + printable(c.words)
	}
	c.stop(&ending{e})
}

// wasiSizes is args_sizes_get and environ_sizes_get: both return zero entries
// and zero bytes.
func wasiSizes(c *call, p []uint64) errno {
	return putAll(c.memory.WriteUint32Le(uint32(p[0]), 0), c.memory.WriteUint32Le(uint32(p[1]), 0))
}

func putAll(ok ...bool) errno {
	for _, o := range ok {
		if !o {
			return errnoFault
		}
	}
	return errnoSuccess
}

func wasiRandom(c *call, p []uint64) errno {
	b, ok := c.memory.Read(uint32(p[0]), uint32(p[1]))
	if !ok {
		return errnoFault
	}
	c.random(b)
	return errnoSuccess
}
