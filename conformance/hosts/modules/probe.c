// The probe of the suite for hosts. It makes the hostcalls of a script with any arguments,
// and reports each result. Package hosts writes the scripts and reads the reports.
//
// Script:  "TPRB", u32 flags, i32 status, u32 count, then count calls of 64 bytes:
//          u32 function, u32 address and u32 length of a buffer, u32 0, six i64 arguments;
//          then data, to which arguments may point. It lies at SCRIPT.
// Report:  for each call 16 hexadecimal digits, and, if it has a buffer, a colon and the
//          bytes of the buffer after the call; a space between calls.
//
// The buffer is filled with 0xAA before the call. The flag 1 reports as output, otherwise
// as a log line of the level debug. With the flag 2 there is no report: the result of the
// last call, made negative, is returned. In creature_handle the script is the payload or, if
// that is none, the attribute handle of the configuration, in hexadecimal digits. In
// creature_init and creature_stop it is the attribute init or stop.
typedef unsigned char u8;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;

#define IMPORT(module, name) __attribute__((import_module(module), import_name(name)))
#define HOST(name) IMPORT("terrarium_v1", #name)
#define EXPORT(name) __attribute__((export_name(name), visibility("default")))

HOST(read) i32 h_read(i32, i32, u32, i32);
HOST(size) i32 h_size(i32);
HOST(feature) i32 h_feature(i32);
HOST(config) i32 h_config(u32, i32, u32, i32);
HOST(channel) i32 h_channel(u32, i32);
HOST(send) i32 h_send(i32, u32, i32, u32, i32);
HOST(send_to) i32 h_send_to(u32, i32, u32, i32);
HOST(request) i32 h_request(u32, i32, u32, i32, i64, i64);
HOST(reply) i32 h_reply(u32, i32);
HOST(output) i32 h_output(u32, i32);
HOST(state_get) i32 h_state_get(u32, i32, u32, i32);
HOST(state_set) i32 h_state_set(u32, i32, u32, i32);
HOST(state_delete) i32 h_state_delete(u32, i32);
HOST(state_list) i32 h_state_list(u32, i32, u32, i32);
HOST(timer_set) i32 h_timer_set(u32, i32, i64, i64, u32, i32);
HOST(timer_cancel) i32 h_timer_cancel(u32, i32);
HOST(tool) i32 h_tool(u32, i32, u32, i32);
HOST(http) i32 h_http(u32, i32, u32, i32, i64);
HOST(log) i32 h_log(i32, u32, i32);
HOST(now) i64 h_now(void);
HOST(random) i32 h_random(u32, i32);
HOST(fuel_left) i64 h_fuel_left(void);

IMPORT("env", "abort") void env_abort(u32, u32, u32, u32);
#define WASI(name) IMPORT("wasi_snapshot_preview1", #name)
#ifdef WITH_WASI
WASI(args_sizes_get) i32 w_args_sizes_get(u32, u32);
WASI(environ_sizes_get) i32 w_environ_sizes_get(u32, u32);
WASI(clock_time_get) i32 w_clock_time_get(u32, i64, u32);
WASI(fd_prestat_get) i32 w_fd_prestat_get(i32, u32);
WASI(fd_read) i32 w_fd_read(i32, u32, u32, u32);
WASI(fd_write) i32 w_fd_write(i32, u32, u32, u32);
WASI(poll_oneoff) i32 w_poll_oneoff(u32, u32, u32, u32);
WASI(random_get) i32 w_random_get(u32, i32);
WASI(proc_exit) void w_proc_exit(i32);
#endif

#define SCRIPT 0x10000u
#define SCRIPT_CAP 0x10000
#define REPORT 0x30000u
#define REPORT_CAP 0xfff0u

static u32 counter, kind_seen, size_seen, repeated;
static i64 early_now, early_random, early_output, phases;
EXPORT("terrarium_abi_v1") void terrarium_abi_v1(void) { __builtin_trap(); }
#ifdef WITH_NOTICE
EXPORT("terrarium_graph_changed") void terrarium_graph_changed(void) { __builtin_trap(); }
#endif

static void visit(int phase) { phases = phases * 10 + phase; }

// What is run before creature_init.
EXPORT("_initialize") void initialize(void) {
	visit(1);
	early_now = h_now();
	h_random((u32)(unsigned long)&early_random, 8);
	early_output = h_output(0, 0);
}

static volatile i64 seen;

// Nests calls without end, without using linear memory for them.
__attribute__((noinline)) static i64 deeper(i64 n) { seen = n; i64 r = deeper(n + 1); return seen ^ r; }

static i64 call(u32 f, const i64 *a);

static i64 own(u32 f, const i64 *a) {
	switch (f) {
	case 100: return (i64)(i32)__builtin_wasm_memory_grow(0, (unsigned long)a[0]);
	case 101: __builtin_trap();
	case 102: for (;;) { repeated++; }
	case 103: return deeper(a[0]);
	case 104: return counter++;
	case 105: return a[0] == 0 ? early_now : a[0] == 1 ? early_random : early_output;
	case 106: return (i64)kind_seen;
	case 107: return (i64)size_seen;
	case 108: { // (count, function, arguments…)
		i64 r = 0, rest[6] = {a[2], a[3], a[4], a[5], 0, 0};
		for (i64 i = 0; i < a[0]; i++) r = call((u32)a[1], rest);
		return r;
	}
	case 109: return phases;
	case 110: return *(volatile u8 *)(unsigned long)a[0];
	case 111: *(volatile u8 *)(unsigned long)a[0] = (u8)a[1]; return 0;
	case 112: env_abort((u32)a[0], (u32)a[1], (u32)a[2], (u32)a[3]); return 0;
#ifdef WITH_WASI
	case 200: return w_args_sizes_get((u32)a[0], (u32)a[1]);
	case 201: return w_environ_sizes_get((u32)a[0], (u32)a[1]);
	case 202: return w_clock_time_get((u32)a[0], a[1], (u32)a[2]);
	case 203: return w_fd_prestat_get((i32)a[0], (u32)a[1]);
	case 204: return w_fd_read((i32)a[0], (u32)a[1], (u32)a[2], (u32)a[3]);
	case 205: return w_fd_write((i32)a[0], (u32)a[1], (u32)a[2], (u32)a[3]);
	case 206: return w_poll_oneoff((u32)a[0], (u32)a[1], (u32)a[2], (u32)a[3]);
	case 207: return w_random_get((u32)a[0], (i32)a[1]);
	case 208: w_proc_exit((i32)a[0]); return 0;
#endif
	}
	return -999;
}

#define I(n) ((i32)a[n])
#define U(n) ((u32)a[n])

static i64 call(u32 f, const i64 *a) {
	switch (f) {
	case 0: return h_read(I(0), I(1), U(2), I(3));
	case 1: return h_size(I(0));
	case 2: return h_feature(I(0));
	case 3: return h_config(U(0), I(1), U(2), I(3));
	case 4: return h_channel(U(0), I(1));
	case 5: return h_send(I(0), U(1), I(2), U(3), I(4));
	case 6: return h_send_to(U(0), I(1), U(2), I(3));
	case 7: return h_request(U(0), I(1), U(2), I(3), a[4], a[5]);
	case 8: return h_reply(U(0), I(1));
	case 9: return h_output(U(0), I(1));
	case 10: return h_state_get(U(0), I(1), U(2), I(3));
	case 11: return h_state_set(U(0), I(1), U(2), I(3));
	case 12: return h_state_delete(U(0), I(1));
	case 13: return h_state_list(U(0), I(1), U(2), I(3));
	case 14: return h_timer_set(U(0), I(1), a[2], a[3], U(4), I(5));
	case 15: return h_timer_cancel(U(0), I(1));
	case 16: return h_tool(U(0), I(1), U(2), I(3));
	case 17: return h_http(U(0), I(1), U(2), I(3), a[4]);
	case 18: return h_log(I(0), U(1), I(2));
	case 19: return h_now();
	case 20: return h_random(U(0), I(1));
	case 21: return h_fuel_left();
	}
	return own(f, a);
}

static u8 *put(u8 *at, u8 b) {
	const char *digits = "0123456789abcdef";
	if ((u32)(unsigned long)at >= REPORT + REPORT_CAP) return at;
	*at++ = (u8)digits[b >> 4];
	*at++ = (u8)digits[b & 15];
	return at;
}

static i32 run(void) {
	u32 *head = (u32 *)(unsigned long)SCRIPT;
	u32 flags = head[1], count = head[3];
	i32 status = (i32)head[2];
	i64 last = 0;
	u8 *at = (u8 *)(unsigned long)REPORT;
	for (u32 i = 0; i < count; i++) {
		u32 *c = (u32 *)(unsigned long)(SCRIPT + 16 + 64 * i);
		u32 buffer = c[1], length = c[2];
		for (u32 n = 0; n < length; n++) ((u8 *)(unsigned long)buffer)[n] = 0xAA;
		i64 r = call(c[0], (const i64 *)(c + 4));
		last = r;
		if (i > 0) *at++ = ' ';
		for (int shift = 56; shift >= 0; shift -= 8) at = put(at, (u8)((unsigned long long)r >> shift));
		if (length > 0) *at++ = ':';
		for (u32 n = 0; n < length; n++) at = put(at, ((u8 *)(unsigned long)buffer)[n]);
	}
	i32 size = (i32)((u32)(unsigned long)at - REPORT);
	if (count == 0) return status;
	if (flags & 2) return last < 0 ? (i32)last : (i32)-last;
	if (flags & 1) h_output(REPORT, size);
	else h_log(0, REPORT, size);
	return status;
}

static u32 digit(u8 c) { return c <= '9' ? c - '0' : c - 'a' + 10u; }

// Reads an attribute of the configuration, and returns whether it is a script.
static int configured(const char *key, i32 length) {
	u8 *text = (u8 *)(unsigned long)SCRIPT;
	i32 n = h_config((u32)(unsigned long)key, length, SCRIPT, SCRIPT_CAP);
	for (i32 i = 0; i + 1 < n && n <= SCRIPT_CAP; i += 2) text[i / 2] = (u8)(digit(text[i]) << 4 | digit(text[i + 1]));
	return n >= 32 && *(u32 *)text == 0x42525054u;
}

EXPORT("creature_init") i32 creature_init(void) {
	visit(2);
	return configured("init", 4) ? run() : 0;
}

EXPORT("creature_handle") i32 creature_handle(i32 kind, i32 size) {
	visit(3);
	kind_seen = (u32)kind;
	size_seen = (u32)size;
	i32 n = h_read(0, 0, SCRIPT, SCRIPT_CAP);
	if (n >= 16 && *(u32 *)(unsigned long)SCRIPT == 0x42525054u) return run();
	return configured("handle", 6) ? run() : 0;
}

EXPORT("creature_stop") void creature_stop(void) {
	visit(4);
	if (configured("stop", 4)) run();
}
