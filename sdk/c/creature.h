// Helpers for creatures in C without a libc: memory, reading, configuration, text and
// JSON. The bare contract is terrarium.h.
//
// Include it in one C file of a module. Nothing here keeps state between turns: call
// tr_begin() first in creature_handle to free all memory of the previous turn.
#ifndef TERRARIUM_CREATURE_H
#define TERRARIUM_CREATURE_H

#include <stddef.h>

#include "terrarium.h"

#define TR_UNUSED __attribute__((unused))

// ---------------------------------------------------------------------------
// The four functions that compilers generate calls to.

__attribute__((weak)) void *memcpy(void *to, const void *from, size_t n) {
#ifdef __wasm_bulk_memory__
	return __builtin_memcpy(to, from, n);
#else
	for (size_t i = 0; i < n; i++) ((uint8_t *)to)[i] = ((const uint8_t *)from)[i];
	return to;
#endif
}

__attribute__((weak)) void *memmove(void *to, const void *from, size_t n) {
#ifdef __wasm_bulk_memory__
	return __builtin_memmove(to, from, n);
#else
	uint8_t *t = to;
	const uint8_t *f = from;
	if (t < f) {
		for (size_t i = 0; i < n; i++) t[i] = f[i];
	} else {
		while (n-- > 0) t[n] = f[n];
	}
	return to;
#endif
}

__attribute__((weak)) void *memset(void *to, int value, size_t n) {
#ifdef __wasm_bulk_memory__
	return __builtin_memset(to, value, n);
#else
	for (size_t i = 0; i < n; i++) ((uint8_t *)to)[i] = (uint8_t)value;
	return to;
#endif
}

__attribute__((weak)) int memcmp(const void *a, const void *b, size_t n) {
	const uint8_t *x = a, *y = b;
	for (size_t i = 0; i < n; i++)
		if (x[i] != y[i]) return x[i] - y[i];
	return 0;
}

// ---------------------------------------------------------------------------
// Memory: an arena behind the static data. It grows to what the largest turn needed
// and no further.

#define TR_PAGE 65536u

extern unsigned char __heap_base; // set by the linker

static uint32_t tr_base; // where the memory of a turn starts; 0 until tr_keep
static uint32_t tr_top;  // where the next allocation starts; 0 until the first

// tr_begin frees everything allocated since tr_keep, or since the start without it.
TR_UNUSED static void tr_begin(void) {
	tr_top = tr_base ? tr_base : (uint32_t)&__heap_base;
}

// tr_keep keeps what creature_init has allocated for the life of the instance.
TR_UNUSED static void tr_keep(void) { tr_base = tr_top; }

// tr_alloc returns n bytes, aligned to 8, or NULL if memory is exhausted.
TR_UNUSED static void *tr_alloc(int32_t n) {
	if (tr_top == 0) tr_begin();
	uint32_t start = (tr_top + 7u) & ~7u;
	uint64_t end = (uint64_t)start + (uint32_t)n;
	if (n < 0 || end > UINT32_MAX - TR_PAGE) return NULL;
	uint32_t have = (uint32_t)__builtin_wasm_memory_size(0);
	uint32_t want = (uint32_t)((end + TR_PAGE - 1) / TR_PAGE);
	if (want > have && __builtin_wasm_memory_grow(0, want - have) == (size_t)-1) return NULL;
	tr_top = (uint32_t)end;
	return (void *)start;
}

// ---------------------------------------------------------------------------
// Bytes

typedef struct {
	const uint8_t *ptr;
	int32_t len;
} tr_bytes;

// TR("text") is a literal as tr_bytes.
#define TR(literal) ((tr_bytes){(const uint8_t *)(literal), (int32_t)sizeof(literal) - 1})

TR_UNUSED static int tr_equal(tr_bytes a, tr_bytes b) {
	return a.len == b.len && memcmp(a.ptr, b.ptr, (size_t)a.len) == 0;
}

TR_UNUSED static int tr_starts(tr_bytes b, tr_bytes prefix) {
	return b.len >= prefix.len && memcmp(b.ptr, prefix.ptr, (size_t)prefix.len) == 0;
}

TR_UNUSED static tr_bytes tr_from(tr_bytes b, int32_t offset) { return (tr_bytes){b.ptr + offset, b.len - offset}; }

// tr_natural reads a whole number of decimal digits; it returns 0 if b is anything
// else or too large.
TR_UNUSED static int tr_natural(tr_bytes b, uint64_t *value) {
	uint64_t n = 0;
	for (int32_t i = 0; i < b.len; i++) {
		uint32_t digit = (uint32_t)b.ptr[i] - '0';
		if (digit > 9 || n > (UINT64_MAX - digit) / 10) return 0;
		n = n * 10 + digit;
	}
	*value = n;
	return b.len > 0;
}

// tr_utf8 returns the length of the UTF-8 sequence that b starts with, or 0 if there
// is none.
TR_UNUSED static int32_t tr_utf8(tr_bytes b) {
	if (b.len == 0) return 0;
	uint8_t c = b.ptr[0], low = 0x80, high = 0xBF;
	int32_t n;
	if (c < 0x80) return 1;
	if (c < 0xC2 || c > 0xF4) return 0;
	if (c < 0xE0) {
		n = 2;
	} else if (c < 0xF0) {
		n = 3;
		if (c == 0xE0) low = 0xA0;
		if (c == 0xED) high = 0x9F; // no surrogates
	} else {
		n = 4;
		if (c == 0xF0) low = 0x90;
		if (c == 0xF4) high = 0x8F;
	}
	if (b.len < n || b.ptr[1] < low || b.ptr[1] > high) return 0;
	for (int32_t i = 2; i < n; i++)
		if ((b.ptr[i] & 0xC0) != 0x80) return 0;
	return n;
}

#define TR_REPLACEMENT TR("\xEF\xBF\xBD") // U+FFFD, for invalid UTF-8

// ---------------------------------------------------------------------------
// A buffer that grows. If memory is exhausted it stays as it is and failed is set, so
// that the caller checks once at the end.

typedef struct {
	uint8_t *ptr;
	int32_t len, cap;
	int failed;
} tr_buffer;

TR_UNUSED static int tr_room(tr_buffer *b, int32_t n) {
	if (b->failed) return 0;
	if (n <= b->cap - b->len) return 1;
	int64_t want = (int64_t)b->len + n;
	if (want < 2 * (int64_t)b->cap) want = 2 * (int64_t)b->cap;
	if (want < 64) want = 64;
	// A buffer at the end of the arena is extended in place.
	int last = b->cap > 0 && (uint32_t)b->ptr + (uint32_t)b->cap == tr_top;
	uint32_t top = tr_top;
	if (last) tr_top = (uint32_t)b->ptr;
	uint8_t *grown = want > INT32_MAX ? NULL : tr_alloc((int32_t)want);
	if (!grown) {
		tr_top = top;
		b->failed = 1;
		return 0;
	}
	if (!last && b->len > 0) memcpy(grown, b->ptr, (size_t)b->len);
	b->ptr = grown;
	b->cap = (int32_t)want;
	return 1;
}

TR_UNUSED static void tr_put(tr_buffer *b, tr_bytes bytes) {
	if (bytes.len <= 0 || !tr_room(b, bytes.len)) return;
	memcpy(b->ptr + b->len, bytes.ptr, (size_t)bytes.len);
	b->len += bytes.len;
}

TR_UNUSED static void tr_put_byte(tr_buffer *b, uint8_t byte) { tr_put(b, (tr_bytes){&byte, 1}); }

TR_UNUSED static void tr_put_natural(tr_buffer *b, uint64_t n) {
	uint8_t digits[20];
	int32_t at = sizeof digits;
	do {
		digits[--at] = (uint8_t)('0' + n % 10);
		n /= 10;
	} while (n > 0);
	tr_put(b, (tr_bytes){digits + at, (int32_t)sizeof digits - at});
}

TR_UNUSED static tr_bytes tr_view(const tr_buffer *b) { return (tr_bytes){b->ptr, b->len}; }

// ---------------------------------------------------------------------------
// Reading

// tr_read reads a complete source. It returns TERRARIUM_OK or an error.
TR_UNUSED static int32_t tr_read(int32_t source, tr_bytes *out) {
	int32_t size = terrarium_size(source);
	if (size < 0) return size;
	uint8_t *ptr = tr_alloc(size);
	if (!ptr) return TERRARIUM_ERR_LIMIT;
	int32_t n = terrarium_read(source, 0, ptr, size);
	if (n < 0) return n;
	*out = (tr_bytes){ptr, n};
	return TERRARIUM_OK;
}

// tr_config reads a member of the configuration; TERRARIUM_ERR_NOT_FOUND if it is
// missing.
TR_UNUSED static int32_t tr_config(tr_bytes name, tr_bytes *out) {
	int32_t size = terrarium_config(name.ptr, name.len, NULL, 0);
	return size < 0 ? size : tr_read(TERRARIUM_SOURCE_RESULT, out);
}

// tr_state reads a value of the state; TERRARIUM_ERR_NOT_FOUND if it is missing.
TR_UNUSED static int32_t tr_state(tr_bytes key, tr_bytes *out) {
	int32_t size = terrarium_state_get(key.ptr, key.len, NULL, 0);
	return size < 0 ? size : tr_read(TERRARIUM_SOURCE_RESULT, out);
}

// tr_state_natural reads a number that tr_state_set_natural wrote. A missing one
// reads as 0, and the result is TERRARIUM_ERR_NOT_FOUND.
TR_UNUSED static int32_t tr_state_natural(tr_bytes key, uint64_t *value) {
	uint8_t digits[24];
	*value = 0;
	int32_t n = terrarium_state_get(key.ptr, key.len, digits, sizeof digits);
	if (n > 0 && n <= (int32_t)sizeof digits) tr_natural((tr_bytes){digits, n}, value);
	return n < 0 ? n : TERRARIUM_OK;
}

// tr_state_set_natural writes a number to the state, in decimal.
TR_UNUSED static int32_t tr_state_set_natural(tr_bytes key, uint64_t value) {
	tr_buffer text = {0};
	tr_put_natural(&text, value);
	if (text.failed) return TERRARIUM_ERR_LIMIT;
	return terrarium_state_set(key.ptr, key.len, text.ptr, text.len);
}

// tr_config_natural reads an attribute that is a whole number of at most most, and
// leaves value unchanged if the attribute is missing. It returns 0, and logs what is
// wrong, if the attribute is anything else.
TR_UNUSED static int tr_config_natural(tr_bytes name, uint64_t most, uint64_t *value) {
	tr_bytes text;
	uint64_t number;
	int32_t status = tr_config(name, &text);
	if (status == TERRARIUM_ERR_NOT_FOUND) return 1;
	if (status >= 0 && tr_natural(text, &number) && number <= most) {
		*value = number;
		return 1;
	}
	tr_buffer line = {0};
	tr_put(&line, TR("config "));
	tr_put(&line, name);
	tr_put(&line, TR(": it is a whole number from 0 to "));
	tr_put_natural(&line, most);
	terrarium_log(TERRARIUM_LEVEL_ERROR, line.ptr, line.len);
	return 0;
}

// tr_awareness_revision reads the revision of the awareness document, which rises
// whenever the document changes. The document itself is read with tr_read.
TR_UNUSED static int32_t tr_awareness_revision(uint64_t *revision) {
	tr_bytes digits;
	int32_t status = tr_read(TERRARIUM_SOURCE_AWARENESS_REVISION, &digits);
	if (status < 0) return status;
	return tr_natural(digits, revision) ? TERRARIUM_OK : TERRARIUM_ERR_NOT_FOUND;
}

// tr_tool calls a group tool with JSON arguments, which may be empty, and reads its
// JSON result. If the call is refused, the source error says why.
TR_UNUSED static int32_t tr_tool(tr_bytes name, tr_bytes args, tr_bytes *out) {
	int32_t size = terrarium_tool(name.ptr, name.len, args.ptr, args.len);
	return size < 0 ? size : tr_read(TERRARIUM_SOURCE_RESULT, out);
}

// tr_code_name returns the stable name of an error code.
TR_UNUSED static tr_bytes tr_code_name(int32_t status) {
	switch (status) {
	case TERRARIUM_ERR_INVALID_ARGUMENT: return TR("invalid_argument");
	case TERRARIUM_ERR_NOT_FOUND: return TR("not_found");
	case TERRARIUM_ERR_ALREADY_EXISTS: return TR("already_exists");
	case TERRARIUM_ERR_AMBIGUOUS: return TR("ambiguous");
	case TERRARIUM_ERR_NOT_CONNECTED: return TR("not_connected");
	case TERRARIUM_ERR_NOT_PRIVILEGED: return TR("not_privileged");
	case TERRARIUM_ERR_DENIED: return TR("denied");
	case TERRARIUM_ERR_LIMIT: return TR("limit");
	case TERRARIUM_ERR_CONFLICT: return TR("conflict");
	case TERRARIUM_ERR_STOPPED: return TR("stopped");
	case TERRARIUM_ERR_TRAPPED: return TR("trapped");
	case TERRARIUM_ERR_OUT_OF_FUEL: return TR("out_of_fuel");
	case TERRARIUM_ERR_DEADLINE: return TR("deadline");
	case TERRARIUM_ERR_TOO_LARGE: return TR("too_large");
	case TERRARIUM_ERR_UNSUPPORTED: return TR("unsupported");
	case TERRARIUM_ERR_STORAGE: return TR("storage");
	case TERRARIUM_ERR_UNAVAILABLE: return TR("unavailable");
	case TERRARIUM_ERR_INTERNAL: return TR("internal");
	}
	return TR("unknown");
}

// tr_log logs three texts as one line.
TR_UNUSED static void tr_log(int32_t level, tr_bytes a, tr_bytes b, tr_bytes c) {
	tr_buffer line = {0};
	tr_put(&line, a);
	tr_put(&line, b);
	tr_put(&line, c);
	terrarium_log(level, line.ptr, line.len);
}

// tr_forward sends a payload on with the headers of the message being handled.
TR_UNUSED static int32_t tr_forward(int32_t channel, tr_bytes payload) {
	tr_bytes headers;
	int32_t status = tr_read(TERRARIUM_SOURCE_HEADERS, &headers);
	if (status < 0) return status;
	return terrarium_send(channel, payload.ptr, payload.len, headers.ptr, headers.len);
}

#endif // TERRARIUM_CREATURE_H
