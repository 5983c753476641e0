//go:build !windows && !purego

#include "direct.h"

#include <string.h>

#define WEAK __attribute__((weak))

WEAK int sqlite3_bind_null(sqlite3_stmt *, int);
WEAK int sqlite3_bind_int64(sqlite3_stmt *, int, long long);
WEAK int sqlite3_bind_double(sqlite3_stmt *, int, double);
WEAK int sqlite3_bind_text64(sqlite3_stmt *, int, const char *, unsigned long long, void (*)(void *), unsigned char);
WEAK int sqlite3_bind_blob64(sqlite3_stmt *, int, const void *, unsigned long long, void (*)(void *));
WEAK int sqlite3_bind_parameter_count(sqlite3_stmt *);
WEAK int sqlite3_clear_bindings(sqlite3_stmt *);
WEAK int sqlite3_step(sqlite3_stmt *);
WEAK int sqlite3_reset(sqlite3_stmt *);
WEAK sqlite3 *sqlite3_db_handle(sqlite3_stmt *);
WEAK int sqlite3_errcode(sqlite3 *);
WEAK int sqlite3_extended_errcode(sqlite3 *);
WEAK const char *sqlite3_errmsg(sqlite3 *);
WEAK int sqlite3_system_errno(sqlite3 *);
WEAK int sqlite3_db_config(sqlite3 *, int, ...);

enum { OK = 0, ROW = 100, DONE = 101, UTF8 = 1, DEFENSIVE = 1010 };

// As in cells.go.
enum { IS_NULL, IS_INTEGER, IS_REAL, IS_TEXT, IS_BLOB };

// terrarium_linked is 0 if the program has no SQLite under these names.
int terrarium_linked(void) {
	return sqlite3_bind_null && sqlite3_bind_int64 && sqlite3_bind_double && sqlite3_bind_text64 && sqlite3_bind_blob64 &&
		sqlite3_bind_parameter_count && sqlite3_clear_bindings && sqlite3_step && sqlite3_reset && sqlite3_db_handle &&
		sqlite3_errcode && sqlite3_extended_errcode && sqlite3_errmsg && sqlite3_system_errno && sqlite3_db_config;
}

int terrarium_defend(sqlite3 *db) {
	int on = 0;
	int rc = sqlite3_db_config(db, DEFENSIVE, 1, &on);
	return rc == OK && !on ? -1 : rc;
}

// bind binds one parameter, without a copy of texts and blobs, and returns the next cell.
static const unsigned char *bind(sqlite3_stmt *st, int i, const unsigned char *cell, int *rc) {
	unsigned char kind = *cell++;
	if (kind == IS_NULL) {
		*rc = sqlite3_bind_null(st, i);
		return cell;
	}
	long long n;
	double real;
	memcpy(&n, cell, sizeof n);
	memcpy(&real, cell, sizeof real);
	cell += sizeof n;
	switch (kind) {
	case IS_INTEGER:
		*rc = sqlite3_bind_int64(st, i, n);
		return cell;
	case IS_REAL:
		*rc = sqlite3_bind_double(st, i, real);
		return cell;
	case IS_TEXT:
		*rc = sqlite3_bind_text64(st, i, (const char *)cell, n, 0, UTF8);
		return cell + n;
	}
	*rc = sqlite3_bind_blob64(st, i, cell, n, 0);
	return cell + n;
}

// terrarium_execute executes a statement until there are no more cells. After an error,
// terrarium_fail must be called.
int terrarium_execute(sqlite3_stmt *st, const unsigned char *cells, long long size) {
	const unsigned char *end = cells + size;
	int parameters = sqlite3_bind_parameter_count(st);
	sqlite3_reset(st);
	do {
		for (int i = 1; i <= parameters; i++) {
			int rc = OK;
			if (cells < end) cells = bind(st, i, cells, &rc);
			else rc = sqlite3_bind_null(st, i);
			if (rc != OK) return rc;
		}
		int rc = sqlite3_step(st);
		if (rc != ROW && rc != DONE) return rc;
		sqlite3_reset(st);
	} while (cells < end);
	sqlite3_clear_bindings(st); // the cells may be freed after the call
	return OK;
}

// terrarium_fail describes the error of the last execution, and resets the statement.
void terrarium_fail(sqlite3_stmt *st, terrarium_failure *failure) {
	sqlite3 *db = sqlite3_db_handle(st);
	failure->code = sqlite3_errcode(db);
	failure->extended = sqlite3_extended_errcode(db);
	failure->system = sqlite3_system_errno(db);
	strncpy(failure->message, sqlite3_errmsg(db), sizeof failure->message - 1);
	sqlite3_reset(st);
	sqlite3_clear_bindings(st);
}
