// clerk does small tasks and puts out the results.
#include "bare.h"
#include "selector.h"
#include "sha256.h"

TERRARIUM_MARKER()

int32_t creature_init(void) { return tr_config_knows(TR("")) ? TERRARIUM_OK : TERRARIUM_ERR_INVALID_ARGUMENT; }

// divide puts p as often as it divides n, and returns the remaining factor of n.
static uint64_t divide(uint64_t n, uint64_t p, tr_buffer *out) {
	for (; n % p == 0; n /= p) {
		tr_put_byte(out, ' ');
		tr_put_natural(out, p);
	}
	return n;
}

// factor puts the prime factors of a number, the smallest first, by trial division:
// the cost grows with the second largest factor or the square root of the largest.
static tr_bytes factor(tr_bytes text, tr_buffer *out) {
	uint64_t n;
	if (!tr_natural(text, &n) || n < 2) return TR("factor takes a whole number from 2 to 18446744073709551615");
	n = divide(divide(n, 2, out), 3, out);
	for (uint64_t p = 5, step = 2; p <= n / p; p += step, step = 6 - step) // all numbers that neither 2 nor 3 divides
		if (n % p == 0) n = divide(n, p, out);
	if (n > 1) divide(n, n, out);
	return TR("");
}

// words puts the number of words in a text.
static tr_bytes words(tr_bytes text, tr_buffer *out) {
	uint64_t n = 0;
	int inside = 0;
	for (int32_t i = 0; i < text.len; i++) {
		int space = selector_space(text.ptr[i]);
		n += !space && !inside;
		inside = !space;
	}
	tr_put_byte(out, ' ');
	tr_put_natural(out, n);
	return TR("");
}

static tr_bytes sum(tr_bytes text, tr_buffer *out) {
	tr_put_byte(out, ' ');
	sha256(text, out);
	return TR("");
}

// work does one task, which begins with its kind and a space. It returns why the task
// cannot be done, or nothing.
static tr_bytes work(tr_bytes task, tr_buffer *out) {
	static const struct {
		const char *verb;
		int32_t len;
		tr_bytes (*todo)(tr_bytes, tr_buffer *);
	} all[] = {{"factor ", 7, factor}, {"sha256 ", 7, sum}, {"words ", 6, words}};
	tr_put(out, task);
	tr_put(out, TR(" ="));
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		if (tr_starts(task, (tr_bytes){(const uint8_t *)all[i].verb, all[i].len})) return all[i].todo(tr_from(task, all[i].len), out);
	return TR("a task begins with factor, sha256 or words, and its input follows");
}

int32_t creature_handle(int32_t kind, int32_t size) {
	(void)size;
	tr_bytes task;
	tr_buffer out = {0};
	if (kind != TERRARIUM_KIND_MESSAGE && kind != TERRARIUM_KIND_OUTPUT && kind != TERRARIUM_KIND_REQUEST) return TERRARIUM_OK;
	tr_begin();
	int32_t status = tr_read(TERRARIUM_SOURCE_PAYLOAD, &task);
	if (status < 0) return status;
	tr_bytes why = work(task, &out);
	if (out.failed) return TERRARIUM_ERR_LIMIT;
	if (why.len > 0 && kind != TERRARIUM_KIND_REQUEST) tr_log(TERRARIUM_LEVEL_WARN, task, TR(": "), why);
	if (why.len == 0) status = terrarium_output(out.ptr, out.len);
	if (status >= 0 && kind == TERRARIUM_KIND_REQUEST) status = terrarium_reply(why.ptr, why.len);
	return status;
}
