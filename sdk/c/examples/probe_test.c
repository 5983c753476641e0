// The fake host answers as the host: probes.txt has the answers of the host.
#include "probe.c"
#include "fake.h"

static const char *status(fake *f, const char *name, const char *args, int32_t *code) {
	(void)f, (void)args, (void)code;
	return strcmp(name, "group_status") == 0 ? "{}" : NULL;
}

// check makes the calls of a group, and compares the answers.
static void check(char *group) {
	tr_bytes lines = fake_text(group), title = tr_until(&lines, '\n');
	fake *f = fake_new("{\"text\":\"a\",\"list\":[1,\"b\"],\"null\":null}");
	fake_bind(f, "out");
	fake_bind(f, "common");
	fake_meet(f, "frog");
	if (tr_equal(title, TR("turn tools"))) f->tools = status;
	if (tr_starts(title, TR("request "))) fake_request(f, (const char *)lines.ptr);
	else fake_message(f, "in", (const char *)lines.ptr);
	tr_bytes answers = f->outputs.len > 0 ? fake_bytes(&f->outputs.at[0].data) : TR_NONE;
	while (answers.len > 0 && memchr(answers.ptr, 0, (size_t)answers.len)) tr_until(&answers, 0); // what the calls have put out
	while (lines.len > 0) {
		tr_bytes want = tr_until(&lines, '\n'), got = tr_until(&answers, '\n');
		FAKE_EXPECT((const char *)tr_join(title, TR(": "), got, TR("\0")).ptr, (const char *)tr_join(title, TR(": "), want, TR("\0")).ptr);
	}
	fake_free(f);
}

int main(void) {
	FILE *file = fopen("../../reference/probes.txt", "r");
	static char text[1 << 16];
	if (!file || fread(text, 1, sizeof text - 1, file) == 0 || fclose(file)) return perror("probes.txt"), 1;
	char *group = strstr(text, "\n\n"), *next; // behind the comment
	for (; group && group[2]; group = next) {
		next = strstr(group + 2, "\n\n");
		if (next) *next = 0;
		check(group + 2);
	}
}
