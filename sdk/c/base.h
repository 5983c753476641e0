// What the other headers stand on: memory, bytes, text, and a buffer that grows. It is
// C11 and C++17, and needs no libc.
#ifndef TERRARIUM_BASE_H
#define TERRARIUM_BASE_H

#include <stddef.h>

#include "terrarium.h"

// TR_HOSTED says that there is a C library: in native tests, and in modules that are
// built with one. Memory then comes from malloc, and not from behind the static data,
// which belongs to the library.
#if defined(__STDC_HOSTED__) && __STDC_HOSTED__
#define TR_HOSTED 1
#include <stdlib.h>
#include <string.h>
#else
#define TR_HOSTED 0
#endif

#define TR_UNUSED __attribute__((unused))
#define TR_NOINLINE __attribute__((unused, noinline)) // for the size of modules

#ifdef __cplusplus
#define TR_EMPTY {}
#define TR_BYTES(p, n) (tr_bytes{(const uint8_t *)(p), (int32_t)(n)})
#else
#define TR_EMPTY {0}
#define TR_BYTES(p, n) ((tr_bytes){(const uint8_t *)(p), (int32_t)(n)})
#endif

// ---------------------------------------------------------------------------
// The five functions that compilers generate calls to.

#if !TR_HOSTED
#ifdef __cplusplus
extern "C" {
#endif

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
	uint8_t *t = (uint8_t *)to;
	const uint8_t *f = (const uint8_t *)from;
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
	const uint8_t *x = (const uint8_t *)a, *y = (const uint8_t *)b;
	for (size_t i = 0; i < n; i++)
		if (x[i] != y[i]) return x[i] - y[i];
	return 0;
}

__attribute__((weak)) size_t strlen(const char *text) {
	const volatile char *at = text; // volatile, or the loop becomes a call to strlen
	while (*at) at++;
	return (size_t)(at - text);
}

#ifdef __cplusplus
}
#endif
#endif

// ---------------------------------------------------------------------------
// Memory: an arena whose content lasts for a turn.

// tr_exhausted says that memory ran out since tr_begin.
static int tr_exhausted;

#if TR_HOSTED
// Every allocation is one of its own, so that sanitizers notice a use beyond its end.
typedef struct tr_piece {
	struct tr_piece *before;
	uint64_t aligned[];
} tr_piece;

static tr_piece *tr_base, *tr_top;

TR_UNUSED static void tr_begin(void) {
	while (tr_top != tr_base) {
		tr_piece *piece = tr_top;
		tr_top = piece->before;
		free(piece);
	}
	tr_exhausted = 0;
}

TR_UNUSED static void tr_keep(void) { tr_base = tr_top; }

TR_UNUSED static void *tr_alloc(int32_t n) {
	tr_piece *piece = n < 0 ? NULL : (tr_piece *)malloc(sizeof(tr_piece) + (size_t)n);
	if (!piece) {
		tr_exhausted = 1;
		return NULL;
	}
	piece->before = tr_top;
	tr_top = piece;
	return piece->aligned;
}

#else
// The memory behind the static data grows to what the largest turn needed and no
// further.
#ifdef __cplusplus
extern "C"
#else
extern
#endif
	unsigned char __heap_base; // set by the linker

static uint32_t tr_base; // where the memory of a turn starts; 0 until tr_keep
static uint32_t tr_top;  // where the next allocation starts; 0 until the first

// tr_begin frees everything allocated since tr_keep, or since the start without it.
TR_UNUSED static void tr_begin(void) {
	tr_top = tr_base ? tr_base : (uint32_t)&__heap_base;
	tr_exhausted = 0;
}

// tr_keep keeps what has been allocated so far for the life of the instance.
TR_UNUSED static void tr_keep(void) { tr_base = tr_top; }

// tr_alloc returns n bytes, aligned to 8, or NULL if memory is exhausted.
TR_NOINLINE static void *tr_alloc(int32_t n) {
	if (tr_top == 0) tr_begin();
	uint32_t start = (tr_top + 7u) & ~7u, end = start + (uint32_t)n;
	uint32_t have = (uint32_t)__builtin_wasm_memory_size(0), want = ((end - 1u) >> 16) + 1u; // pages of 64 KB
	if (n < 0 || end < start || (want > have && __builtin_wasm_memory_grow(0, want - have) == (size_t)-1)) {
		tr_exhausted = 1;
		return NULL;
	}
	tr_top = end;
	return (void *)start;
}
#endif

// ---------------------------------------------------------------------------
// Bytes

typedef struct {
	const uint8_t *ptr;
	int32_t len;
} tr_bytes;

// TR("text") is a literal as tr_bytes.
#define TR(literal) TR_BYTES("" literal, sizeof(literal) - 1)

// TR_NONE is no bytes.
#define TR_NONE TR("")

TR_UNUSED static int tr_equal(tr_bytes a, tr_bytes b) {
	return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, (size_t)a.len) == 0);
}

TR_UNUSED static int tr_starts(tr_bytes b, tr_bytes prefix) {
	return b.len >= prefix.len && (prefix.len == 0 || memcmp(b.ptr, prefix.ptr, (size_t)prefix.len) == 0);
}

TR_UNUSED static tr_bytes tr_from(tr_bytes b, int32_t offset) { return TR_BYTES(b.ptr + offset, b.len - offset); }

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

// tr_whole_of reads a whole number, which may be negative; it returns 0 if b is anything
// else or too large.
TR_UNUSED static int tr_whole_of(tr_bytes b, int64_t *value) {
	uint64_t n;
	int negative = b.len > 0 && b.ptr[0] == '-';
	if (!tr_natural(negative ? tr_from(b, 1) : b, &n) || n > (uint64_t)INT64_MAX + (negative ? 1 : 0)) return 0;
	*value = negative ? (int64_t)(0 - n) : (int64_t)n;
	return 1;
}

// tr_chars is a text that NUL ends as tr_bytes.
TR_UNUSED static tr_bytes tr_chars(const char *text) { return TR_BYTES(text, strlen(text)); }

// tr_name returns the text at a place in a list of texts that NUL follows.
TR_UNUSED static const char *tr_name(const char *names, int32_t place) {
	while (place > 0) place -= *names++ == 0;
	return names;
}

TR_NOINLINE static const char *tr_code_text(int32_t status) {
	return tr_name(TERRARIUM_CODE_NAMES "\0unknown", status < TERRARIUM_ERR_LAST ? 1 - TERRARIUM_ERR_LAST : -status);
}

// tr_code_name returns the stable name of an error, and ok for success.
TR_UNUSED static tr_bytes tr_code_name(int32_t status) { return tr_chars(tr_code_text(status)); }

// tr_until divides b at the first byte that equals end: it returns what is before it, and
// leaves in b what is behind it.
TR_UNUSED static tr_bytes tr_until(tr_bytes *b, uint8_t end) {
	int32_t n = 0;
	while (n < b->len && b->ptr[n] != end) n++;
	tr_bytes before = TR_BYTES(b->ptr, n);
	*b = tr_from(*b, n < b->len ? n + 1 : n);
	return before;
}

// tr_count returns how often a byte is in b.
TR_UNUSED static int32_t tr_count(tr_bytes b, uint8_t byte) {
	int32_t n = 0;
	for (int32_t i = 0; i < b.len; i++) n += b.ptr[i] == byte;
	return n;
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

// tr_is_utf8 returns whether all of b is UTF-8.
TR_UNUSED static int tr_is_utf8(tr_bytes b) {
	for (int32_t n; b.len > 0; b = tr_from(b, n))
		if ((n = tr_utf8(b)) == 0) return 0;
	return 1;
}

#define TR_REPLACEMENT TR("\xEF\xBF\xBD") // U+FFFD, for invalid UTF-8

// ---------------------------------------------------------------------------
// A buffer that grows. It begins as {0}. If memory is exhausted it stays as it is and
// failed is set, so that the caller checks once at the end. A turn that is run by
// creature.h fails then, so that a handler need not check.

typedef struct {
	uint8_t *ptr;
	int32_t len, cap;
	int failed;
} tr_buffer;

// tr_room makes room for n more bytes.
TR_NOINLINE static int tr_room(tr_buffer *b, int32_t n) {
	if (b->failed) return 0;
	if (n <= b->cap - b->len) return 1;
	uint32_t want = (uint32_t)b->len + (uint32_t)n, twice = (uint32_t)b->cap * 2;
	if (want < twice) want = twice;
	if (want < 64) want = 64;
#if !TR_HOSTED
	// A buffer at the end of the arena is extended in place.
	uint32_t top = tr_top;
	int last = b->cap > 0 && (uint32_t)b->ptr + (uint32_t)b->cap == top;
	if (last) tr_top = (uint32_t)b->ptr;
#endif
	uint8_t *grown = (uint8_t *)tr_alloc((int32_t)want);
#if !TR_HOSTED
	if (!grown) tr_top = top;
#endif
	if (!grown) {
		b->failed = 1;
		return 0;
	}
	if (grown != b->ptr && b->len > 0) memcpy(grown, b->ptr, (size_t)b->len);
	b->ptr = grown;
	b->cap = (int32_t)want;
	return 1;
}

// tr_put_raw takes what it puts as two numbers, because that is less code than a struct.
TR_NOINLINE static void tr_put_raw(tr_buffer *b, const uint8_t *ptr, int32_t len) {
	if (len <= 0 || !tr_room(b, len)) return;
	memcpy(b->ptr + b->len, ptr, (size_t)len);
	b->len += len;
}

TR_UNUSED static inline void tr_put(tr_buffer *b, tr_bytes bytes) { tr_put_raw(b, bytes.ptr, bytes.len); }

// tr_put_text puts a text that NUL ends.
TR_NOINLINE static void tr_put_text(tr_buffer *b, const char *text) { tr_put_raw(b, (const uint8_t *)text, (int32_t)strlen(text)); }

TR_UNUSED static void tr_put_byte(tr_buffer *b, uint8_t byte) { tr_put_raw(b, &byte, 1); }

TR_UNUSED static void tr_put_natural(tr_buffer *b, uint64_t n) {
	uint8_t digits[20];
	int32_t at = sizeof digits;
	do {
		digits[--at] = (uint8_t)('0' + n % 10);
		n /= 10;
	} while (n > 0);
	tr_put(b, TR_BYTES(digits + at, (int32_t)sizeof digits - at));
}

TR_UNUSED static void tr_put_whole(tr_buffer *b, int64_t n) {
	if (n < 0) tr_put_byte(b, '-');
	tr_put_natural(b, n < 0 ? 0 - (uint64_t)n : (uint64_t)n);
}

TR_UNUSED static tr_bytes tr_view(const tr_buffer *b) { return TR_BYTES(b->ptr, b->len); }

// tr_join returns texts as one: tr_join(TR("a"), b, tr_whole(3)).
TR_UNUSED static tr_bytes tr_join_parts(const tr_bytes *parts, size_t n) {
	tr_buffer all = TR_EMPTY;
	for (size_t i = 0; i < n; i++) tr_put(&all, parts[i]);
	return all.len > 0 ? tr_view(&all) : TR_NONE;
}

#ifdef __cplusplus
template <size_t N> TR_UNUSED static tr_bytes tr_join_list(const tr_bytes (&parts)[N]) { return tr_join_parts(parts, N); }
#define tr_join(...) tr_join_list({__VA_ARGS__})
#else
#define tr_join(...) tr_join_parts((const tr_bytes[]){__VA_ARGS__}, sizeof((const tr_bytes[]){__VA_ARGS__}) / sizeof(tr_bytes))
#endif

// tr_whole returns a number as decimal text.
TR_UNUSED static tr_bytes tr_whole(int64_t n) {
	tr_buffer text = TR_EMPTY;
	tr_put_whole(&text, n);
	return tr_view(&text);
}

#endif // TERRARIUM_BASE_H
