package terrarium

import "strconv"

// invalid is the error for input that the creature does not accept.
func invalid(text string) error { return &Error{Code: InvalidArgument, Text: text} }

// attribute returns an attribute as JSON. If it is missing, it returns nil, or an error
// unless there is a default.
func (t *Turn) attribute(key string, hasDefault bool) (JSON, error) {
	value := JSON(t.ConfigJSON()).Get(key)
	if value == nil && !hasDefault {
		return nil, &Error{Code: NotFound, Text: "config " + key + ": it is required"}
	}
	return value, nil
}

// ConfigText returns an attribute that is a text. If it is missing, ConfigText returns
// the default, or an error without one.
func (t *Turn) ConfigText(key string, def ...string) (string, error) {
	value, err := t.attribute(key, len(def) > 0)
	switch {
	case err != nil:
		return "", err
	case value == nil:
		return def[0], nil
	case value[0] != '"':
		return "", invalid("config " + key + ": it must be a text")
	}
	return value.Text(), nil
}

// ConfigWhole returns an attribute that is a whole number from least to most. If it is
// missing, ConfigWhole returns the default, or an error without one.
func (t *Turn) ConfigWhole(key string, least, most int64, def ...int64) (int64, error) {
	value, err := t.attribute(key, len(def) > 0)
	if err != nil {
		return 0, err
	}
	if value == nil {
		return def[0], nil
	}
	n, ok := value.Whole()
	if !ok || n < least || n > most {
		return 0, invalid("config " + key + ": it must be a whole number from " + strconv.FormatInt(least, 10) + " to " + strconv.FormatInt(most, 10))
	}
	return n, nil
}

// ConfigBool returns an attribute that is true or false. If it is missing, ConfigBool
// returns the default, or an error without one.
func (t *Turn) ConfigBool(key string, def ...bool) (bool, error) {
	value, err := t.attribute(key, len(def) > 0)
	switch {
	case err != nil:
		return false, err
	case value == nil:
		return def[0], nil
	case string(value) != "true" && string(value) != "false":
		return false, invalid("config " + key + ": it must be true or false")
	}
	return string(value) == "true", nil
}

// ConfigKnows returns an error if the configuration has an attribute that is not among
// names, so that a misspelt one is not ignored.
func (t *Turn) ConfigKnows(names ...string) error {
	known := "it has "
	for i, name := range names {
		if i > 0 {
			known += ", "
		}
		known += name
	}
	if len(names) == 0 {
		known = "it has none"
	}
	var err error
	JSON(t.ConfigJSON()).each('{', func(key string, _ JSON) {
		for _, name := range names {
			if key == name {
				return
			}
		}
		if err == nil {
			err = invalid("config " + key + ": the creature has no such attribute; " + known)
		}
	})
	return err
}
