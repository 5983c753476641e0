// Lists of texts for fake.h: everything that the host holds for a creature.
#ifndef TERRARIUM_FAKE_LIST_H
#define TERRARIUM_FAKE_LIST_H

#include "creature.h"

// fake_string is bytes, followed by NUL so that a test may compare them as a text.
typedef struct {
	char *text;
	int32_t len;
} fake_string;

// fake_item is an element of a list: a name and what it stands for.
typedef struct {
	fake_string name, data, more;
	int64_t number, period;
	int changed;
} fake_item;

typedef struct {
	fake_item *at;
	int32_t len;
} fake_list;

static tr_bytes fake_text(const char *text) { return TR_BYTES(text, strlen(text)); }

static tr_bytes fake_bytes(const fake_string *s) { return s->text ? TR_BYTES(s->text, s->len) : TR_NONE; }

static void fake_set(fake_string *s, tr_bytes bytes) {
	char *text = (char *)malloc((size_t)bytes.len + 1);
	if (!text) abort();
	if (bytes.len > 0) memcpy(text, bytes.ptr, (size_t)bytes.len);
	text[bytes.len] = 0;
	free(s->text);
	s->text = text;
	s->len = bytes.len;
}

static void fake_append(fake_string *s, tr_bytes more) {
	char *text = (char *)realloc(s->text, (size_t)s->len + (size_t)more.len + 1);
	if (!text) abort();
	if (more.len > 0) memcpy(text + s->len, more.ptr, (size_t)more.len);
	s->text = text;
	s->len += more.len;
	text[s->len] = 0;
}

static int fake_compare(tr_bytes a, tr_bytes b) {
	int order = memcmp(a.ptr, b.ptr, (size_t)(a.len < b.len ? a.len : b.len));
	return order ? order : a.len - b.len;
}

// fake_insert puts an item at a place.
static fake_item *fake_insert(fake_list *list, int32_t place, tr_bytes name, tr_bytes data) {
	fake_item *grown = (fake_item *)realloc(list->at, ((size_t)list->len + 1) * sizeof *grown);
	if (!grown) abort();
	list->at = grown;
	memmove(grown + place + 1, grown + place, (size_t)(list->len++ - place) * sizeof *grown);
	memset(grown + place, 0, sizeof *grown);
	fake_set(&grown[place].name, name);
	fake_set(&grown[place].data, data);
	return grown + place;
}

static fake_item *fake_add(fake_list *list, tr_bytes name, tr_bytes data) { return fake_insert(list, list->len, name, data); }

static fake_item *fake_find(fake_list *list, tr_bytes name) {
	for (int32_t i = 0; i < list->len; i++)
		if (tr_equal(fake_bytes(&list->at[i].name), name)) return &list->at[i];
	return NULL;
}

// fake_put sets the item of that name in a list that is sorted by name.
static fake_item *fake_put(fake_list *list, tr_bytes name, tr_bytes data) {
	fake_item *item = fake_find(list, name);
	int32_t place = 0;
	if (!item) {
		while (place < list->len && fake_compare(fake_bytes(&list->at[place].name), name) < 0) place++;
		return fake_insert(list, place, name, data);
	}
	fake_set(&item->data, data);
	return item;
}

static int fake_remove(fake_list *list, tr_bytes name) {
	fake_item *item = fake_find(list, name);
	if (!item) return 0;
	free(item->name.text);
	free(item->data.text);
	free(item->more.text);
	memmove(item, item + 1, (size_t)(list->at + --list->len - item) * sizeof *item);
	return 1;
}

// fake_cut removes all items from a place on.
static void fake_cut(fake_list *list, int32_t place) {
	for (; list->len > place; list->len--) {
		fake_item *last = &list->at[list->len - 1];
		free(last->name.text);
		free(last->data.text);
		free(last->more.text);
	}
}

static void fake_clear(fake_list *list) {
	fake_cut(list, 0);
	free(list->at);
	list->at = NULL;
}

static void fake_copy(fake_list *to, const fake_list *from) {
	fake_clear(to);
	for (int32_t i = 0; i < from->len; i++) {
		const fake_item *item = &from->at[i];
		fake_item *copy = fake_add(to, fake_bytes(&item->name), fake_bytes(&item->data));
		fake_set(&copy->more, fake_bytes(&item->more));
		copy->number = item->number;
		copy->period = item->period;
	}
}

#endif // TERRARIUM_FAKE_LIST_H
