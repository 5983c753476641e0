// Package plainly puts errors of Go's packages into plain words: those of package json do not
// name types of Go, and a missing file is described in one way.
package plainly

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"regexp"
	"strings"
)

// worded is an error with another text.
type worded struct {
	text string
	err  error
}

func (w *worded) Error() string { return w.text }
func (w *worded) Unwrap() error { return w.err }

// Text returns the text of an error in plain words.
func Text(err error) string {
	text := err.Error()
	var path *fs.PathError
	if errors.As(err, &path) && errors.Is(path.Err, fs.ErrNotExist) {
		text = strings.Replace(text, path.Error(), Missing(path.Path), 1)
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		text = strings.Replace(text, syntax.Error(), ofJSON(syntax), 1)
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		text = strings.Replace(text, wrong.Error(), ofJSON(wrong), 1)
	}
	var corrupt base64.CorruptInputError
	if errors.As(err, &corrupt) {
		text = strings.Replace(text, corrupt.Error(), Base64(corrupt), 1)
	}
	return text
}

// Missing is the text for a file or folder that does not exist.
func Missing(path string) string { return "there is no file or folder " + path }

// Base64 is the text for a text that is not base64.
func Base64(err base64.CorruptInputError) string {
	return fmt.Sprintf("it is not base64: the character at byte %d does not belong there", int64(err)+1)
}

// JSON returns an error of reading a JSON text in plain words, with the place in the text if
// it is known.
func JSON(text []byte, err error) error {
	if err == nil {
		return nil
	}
	message := ofJSON(err)
	if offset := offsetOf(err); offset > 0 && offset <= int64(len(text)) && message != cutShort {
		before := text[:offset]
		message += fmt.Sprintf(", at line %d, column %d", bytes.Count(before, []byte("\n"))+1, len(before)-bytes.LastIndexByte(before, '\n')-1)
	}
	return &worded{message, err}
}

func offsetOf(err error) int64 {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return syntax.Offset
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return wrong.Offset
	}
	return 0
}

const cutShort = "the text ends too early"

func ofJSON(err error) string {
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF):
		return "it is empty"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return cutShort
	case errors.As(err, &syntax):
		if syntax.Error() == "unexpected end of JSON input" {
			return cutShort
		}
		return syntax.Error()
	case errors.As(err, &wrong):
		subject := "it"
		if wrong.Field != "" {
			subject = fmt.Sprintf("the field %q", wrong.Field)
		}
		return fmt.Sprintf("%s is a JSON %s, not %s", subject, wrong.Value, kind(wrong.Type))
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// kind describes the JSON values that a type of Go holds.
func kind(t reflect.Type) string {
	switch k := t.Kind(); {
	case k == reflect.Pointer:
		return kind(t.Elem())
	case k == reflect.Bool:
		return "true or false"
	case k == reflect.String:
		return "a string"
	case k >= reflect.Int && k <= reflect.Uint64:
		return "a whole number"
	case k == reflect.Float32 || k == reflect.Float64:
		return "a number"
	case k == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return "a base64 string"
	case k == reflect.Slice || k == reflect.Array:
		return "an array"
	case k == reflect.Map || k == reflect.Struct:
		return "an object"
	}
	return "what belongs there"
}

var (
	yamlType    = regexp.MustCompile("cannot unmarshal !!(\\w+)( `[^`]*`)? into \\S.*")
	yamlUnknown = regexp.MustCompile(`field (\S+) not found in type .*`)
	yamlKinds   = map[string]string{"map": "a mapping", "seq": "a list", "str": "a string", "int": "a whole number", "float": "a number", "bool": "true or false", "null": "nothing"}
)

// YAML returns the text of an error of reading YAML without types of Go.
func YAML(err error) string {
	text := strings.TrimPrefix(strings.ReplaceAll(err.Error(), "yaml: unmarshal errors:\n  ", ""), "yaml: ")
	text = yamlUnknown.ReplaceAllString(text, `unknown field $1`)
	return yamlType.ReplaceAllStringFunc(text, func(found string) string {
		m := yamlType.FindStringSubmatch(found)
		kind := yamlKinds[m[1]]
		if kind == "" {
			kind = "a value of the type " + m[1]
		}
		return kind + m[2] + " does not belong there"
	})
}
