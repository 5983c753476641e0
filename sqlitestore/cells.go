package sqlitestore

import (
	"database/sql/driver"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
)

// cellError says that a column does not hold what it should. SQLite lets any file
// have any type in any column, so every one that is read is checked.
type cellError struct{ message string }

func (e *cellError) Error() string { return e.message }

// takeRow puts the columns of a row into variables: *int64, *uint64, *bool, *string,
// *[]byte or *engine.Origin, or nil for one that is not wanted. None but []byte may
// be NULL.
func takeRow(row []driver.Value, to ...any) error {
	for i, target := range to {
		if !put(row[i], target) {
			return &cellError{fmt.Sprintf("column %d of a row is %s, which %s", i+1, kindOfCell(row[i]), wantedCell(target))}
		}
	}
	return nil
}

func put(cell driver.Value, target any) (ok bool) {
	switch to := target.(type) {
	case nil:
		return true
	case *int64:
		*to, ok = cell.(int64)
	case *uint64:
		var n int64
		n, ok = cell.(int64)
		*to = uint64(n)
	case *bool:
		var n int64
		n, ok = cell.(int64)
		*to = n != 0
	case *string:
		*to, ok = cell.(string)
	case *[]byte:
		*to, ok = cell.([]byte)
		ok = ok || cell == nil
	case *journal.Origin:
		uuid, _ := cell.([]byte)
		var err error
		*to, err = originIn(uuid)
		ok = err == nil
	}
	return ok
}

func kindOfCell(cell driver.Value) string {
	switch c := cell.(type) {
	case nil:
		return "NULL"
	case int64:
		return "an integer"
	case float64:
		return "a real number"
	case string:
		return "text"
	case []byte:
		return fmt.Sprintf("a blob of %d bytes", len(c))
	}
	return fmt.Sprintf("a %T", cell)
}

func wantedCell(target any) string {
	switch target.(type) {
	case *int64, *uint64, *bool:
		return "should be an integer"
	case *string:
		return "should be text"
	case *[]byte:
		return "should be a blob"
	case *journal.Origin:
		return "should be an origin, a blob of 16 bytes"
	}
	return "is of a type that is not read"
}

// originIn is an origin as a file has it.
func originIn(uuid []byte) (journal.Origin, error) {
	if len(uuid) != len(journal.Origin{}) {
		return journal.Origin{}, &cellError{fmt.Sprintf("an origin has %d bytes, and should have %d", len(uuid), len(journal.Origin{}))}
	}
	return journal.Origin(uuid), nil
}

// storeName checks the name of a file in stores/ that a row of the catalogue tells.
func (k *catalog) storeName(row, text string) error {
	_, err := nameOfStore(text)
	if err == nil {
		return nil
	}
	return &abi.Error{
		Code: abi.Storage, Op: "open", Message: fmt.Sprintf("%s: the row %s names a file that no store can be: %q", k.path, row, shorten(text)),
		Remedy: "do not use the directory unless you know where it comes from; nothing has been changed. If it is yours, " + rebuildRemedy(filepath.Dir(k.path)),
		IDs:    map[string]string{"path": k.path},
	}
}

// nameOfStore checks a name of a file in stores/.
func nameOfStore(text string) (files.Name, error) {
	name, err := files.NameOf(text)
	if err == nil && !strings.HasSuffix(text, storeSuffix) {
		err = &cellError{fmt.Sprintf("%q does not end in %s", shorten(text), storeSuffix)}
	}
	return name, err
}

// mostTold bounds what a message repeats of a value that a file has.
const mostTold = 80

func shorten(text string) string {
	if len(text) > mostTold {
		return text[:mostTold] + "…"
	}
	return text
}
