package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// decodeValue makes a setting's type of what a file or a variable has: text,
// or what a file's format has for it. Nothing is guessed: a number is no
// duration, since nobody who writes 25 means nanoseconds, and 1.5 and -1 are
// no number of streams.
func decodeValue(_, to reflect.Type, value any) (any, error) {
	text, isText := value.(string)
	switch {
	case to == reflect.TypeFor[time.Duration]():
		if d, ok := value.(time.Duration); ok {
			return d, nil
		}
		return time.ParseDuration(text)
	case to == reflect.TypeFor[Bytes]():
		var b Bytes
		err := b.Set(wholeText(value))
		return b, err
	case to.Kind() == reflect.Slice && isText:
		return splitList(text), nil
	case to.Kind() == reflect.String && !isText:
		return numberText(value)
	case to.Kind() == reflect.Bool:
		return strconv.ParseBool(fmt.Sprint(value))
	case to.Kind() == reflect.Int:
		return strconv.Atoi(wholeText(value))
	case to.Kind() == reflect.Uint32:
		n, err := strconv.ParseUint(wholeText(value), 10, 32)
		return uint32(n), err
	}
	return value, nil
}

// splitList reads a list in a variable: values with commas between.
func splitList(text string) []string {
	list := []string{}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// numberText takes a number for text, as in a key-prefix of 7, and no more.
func numberText(value any) (string, error) {
	switch value.(type) {
	case int, int64, uint64, float64:
		return wholeText(value), nil
	default:
		return "", fmt.Errorf("%v is not text", value)
	}
}

// wholeText is value as text. JSON has all its numbers as fractions.
func wholeText(value any) string {
	if f, ok := value.(float64); ok {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}

// wantedForm says what the values of a setting look like.
func wantedForm(name string) string {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	AddFlags(flags)
	f := flags.Lookup(name)
	if f == nil {
		return "text"
	}
	switch f.Value.Type() {
	case "duration":
		return "a duration such as 25ms or 10s"
	case "bool":
		return "true or false"
	case "size":
		return "a size such as 64MiB, or a number of bytes"
	case "int", "uint32":
		return "a whole number"
	case "stringSlice":
		return "a list of texts"
	case "stringArray":
		return "a path, or a list of paths"
	default:
		return "text"
	}
}
