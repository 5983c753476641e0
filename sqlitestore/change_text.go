package sqlitestore

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// JSON has only UTF-8 texts, but names and messages from creatures and callers need not
// be UTF-8. Changes with such texts are marked, and each byte of a text is written as the
// character with that number.

// encode returns the changes in the form in which the file keeps them.
func (c *rowChanges) encode() ([]byte, error) {
	text, err := json.Marshal(c)
	if err != nil || !bytes.Contains(text, []byte(`\ufffd`)) && !bytes.Contains(text, []byte("\ufffd")) {
		return text, err
	}
	spelt := withTexts(*c, spell)
	spelt.Spelt = true
	return json.Marshal(&spelt)
}

// decodeChanges reads what encode has written.
func decodeChanges(text string) (c rowChanges, err error) {
	if err = json.Unmarshal([]byte(text), &c); err == nil && c.Spelt {
		c = withTexts(c, unspell)
	}
	return c, err
}

// spell writes a text with a character for each byte.
func spell(text string) string {
	out := make([]rune, len(text))
	for i := range len(text) {
		out[i] = rune(text[i])
	}
	return string(out)
}

// unspell is the inverse of spell.
func unspell(text string) string {
	out := make([]byte, 0, len(text))
	for _, r := range text {
		out = append(out, byte(r))
	}
	return string(out)
}

// withTexts returns a copy of a value in which every text is changed.
func withTexts[T any](of T, change func(string) string) T {
	return textsOf(reflect.ValueOf(&of).Elem(), change).Interface().(T)
}

func textsOf(v reflect.Value, change func(string) string) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.String:
		out.SetString(change(v.String()))
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(textsOf(v.Elem(), change))
		}
	case reflect.Slice:
		if v.IsNil() || v.Type().Elem().Kind() == reflect.Uint8 {
			break
		}
		out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			out.Index(i).Set(textsOf(v.Index(i), change))
		}
	case reflect.Map:
		if v.IsNil() {
			break
		}
		out.Set(reflect.MakeMap(v.Type()))
		for at := v.MapRange(); at.Next(); {
			out.SetMapIndex(textsOf(at.Key(), change), textsOf(at.Value(), change))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(textsOf(v.Field(i), change))
			}
		}
	}
	return out
}
