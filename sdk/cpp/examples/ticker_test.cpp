#include "ticker.cpp"
#include "fake.h"

int main(void) {
	fake *f = fake_new("{\"every_ms\":100,\"limit\":2}");
	fake_bind(f, "out");
	FAKE_EXPECT(fake_init(f), "");
	FAKE_EXPECT(fake_start(f), "");
	FAKE_EXPECT(fake_message(f, "in", "in 150 tea is ready"), "");
	FAKE_EXPECT(fake_advance(f, 250), "send out \"tick 1 at 1100\"\nstate ticks \"1\"\n");
	FAKE_EXPECT(fake_advance(f, 0), "send out \"tea: is ready\"\n");
	FAKE_EXPECT(fake_advance(f, 0), "log info done after 2 ticks\nsend out \"tick 2 at 1200\"\nstate ticks \"2\"\n");
	if (fake_advance(f, 1000)) return 1; // no timer is left
	FAKE_EXPECT(fake_message(f, "in", "stop"), "log info was not running\n");
	FAKE_EXPECT(fake_message(f, "in", "in x y z"), "log error unknown command: in x y z\nfailed failed\n");
	FAKE_EXPECT(fake_start(f), "");
	FAKE_EXPECT(fake_message(f, "in", "stop"), "log info stopped\n");
	fake_free(f);
}
