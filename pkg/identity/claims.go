package identity

import (
	"maps"
	"math"
	"slices"
	"strconv"
)

// jwtFilter is the filter whose metadata has the payloads of verified tokens,
// each under the name that its provider gave it.
const jwtFilter = "envoy.filters.http.jwt_authn"

// Claims returns the payload of a request's verified token. Of several, the
// first by name that has a claim is the one whose claim it is. The map may be
// a's own, and is nil if there is none.
func Claims(a *Attributes) map[string]any {
	payloads := a.Metadata[jwtFilter]
	var all map[string]any
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(payloads))) {
		payload, ok := payloads[name].(map[string]any)
		switch {
		case !ok:
		case len(payloads) == 1:
			return payload
		case all == nil:
			all = maps.Clone(payload)
		default:
			maps.Copy(all, payload)
		}
	}
	return all
}

// findClaim returns the value at path in the payload that is named provider,
// else in the first by name that has one; "" if there is none.
func findClaim(payloads map[string]any, provider, path string) string {
	if provider != "" {
		return inPayload(payloads[provider], path)
	}
	var first, value string
	for name, payload := range payloads {
		if value != "" && name > first {
			continue
		}
		if v := inPayload(payload, path); v != "" {
			first, value = name, v
		}
	}
	return value
}

func inPayload(payload any, path string) string {
	m, _ := payload.(map[string]any)
	return findPath(m, path)
}

// findMetadata returns the value at path, which begins with a filter's name.
// That name may have dots of its own.
func findMetadata(filters map[string]map[string]any, path string) string {
	for i := range len(path) {
		if path[i] != '.' {
			continue
		}
		if v := findPath(filters[path[:i]], path[i+1:]); v != "" {
			return v
		}
	}
	return ""
}

// findPath returns the value at path in m. A key may have dots of its own, as
// namespaced claims do: the whole path is tried as a key first.
func findPath(m map[string]any, path string) string {
	if v := scalar(m[path]); v != "" {
		return v
	}
	for i := range len(path) {
		if path[i] != '.' {
			continue
		}
		inner, _ := m[path[:i]].(map[string]any)
		if inner == nil {
			continue
		}
		if v := findPath(inner, path[i+1:]); v != "" {
			return v
		}
	}
	return ""
}

// exact bounds the whole numbers that are still told apart in metadata, whose
// numbers are doubles.
const exact = 1 << 53

// scalar returns v as text: text itself and whole numbers. All else is "".
func scalar(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		if math.Trunc(v) != v || math.Abs(v) >= exact {
			return ""
		}
		return strconv.FormatInt(int64(v), 10)
	default:
		return ""
	}
}
