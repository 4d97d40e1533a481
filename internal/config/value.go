package config

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// decodeValue makes a setting's type of what a file or variable has. A number
// is no duration: nobody who writes 25 means nanoseconds.
func decodeValue(from, to reflect.Type, value any) (any, error) {
	switch {
	case to == reflect.TypeFor[time.Duration]() && from.Kind() == reflect.String:
		return time.ParseDuration(value.(string))
	case to == reflect.TypeFor[time.Duration]() && from != to:
		return nil, fmt.Errorf("not a duration")
	case to == reflect.TypeFor[[]string]() && from.Kind() == reflect.String:
		return splitList(value.(string)), nil
	case to.Kind() == reflect.String && from.Kind() != reflect.String:
		return scalarText(from, value)
	}
	return value, nil
}

// splitList reads a list in a variable: values with commas between.
func splitList(text string) []string {
	var list []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// scalarText takes a number for text, as in a key-prefix of 7, and no more.
func scalarText(from reflect.Type, value any) (any, error) {
	switch from.Kind() {
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float64:
		return fmt.Sprint(value), nil
	default:
		return nil, fmt.Errorf("not text")
	}
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
	case "int", "uint32":
		return "a whole number"
	case "stringArray":
		return "a path, or a list of paths"
	default:
		return "text"
	}
}

// didYouMean returns a hint at the name that is nearest to key, if one is
// near.
func didYouMean(key string, names []string, spell func(string) string) string {
	best, least := "", 3
	squeeze := strings.NewReplacer("-", "", "_", "", ".", "")
	for _, name := range names {
		if d := distance(squeeze.Replace(key), squeeze.Replace(name)); d < least {
			best, least = name, d
		}
	}
	if best == "" {
		return ""
	}
	if spell != nil {
		best = spell(best)
	}
	return "; did you mean " + best + "?"
}

// distance is how many letters must be put, taken or changed to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
