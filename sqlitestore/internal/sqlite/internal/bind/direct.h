// The parts of SQLite's interface that are used. The header of the linked library cannot be included
// from another module. The symbols are weak, so that this package can be linked by itself,
// as cgo does to examine it.
#ifndef TERRARIUM_BIND_H
#define TERRARIUM_BIND_H

typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;

// terrarium_failure describes an error.
typedef struct {
	int code;
	int extended;
	int system;
	char message[256];
} terrarium_failure;

int terrarium_linked(void);
int terrarium_defend(sqlite3 *db);
int terrarium_execute(sqlite3_stmt *st, const unsigned char *cells, long long size);
void terrarium_fail(sqlite3_stmt *st, terrarium_failure *failure);

#endif
