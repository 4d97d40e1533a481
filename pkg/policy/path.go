package policy

import "strings"

// NormalPath returns the path of a request's target in the one form that
// rules match and keys hold, so that two spellings of a path that an upstream
// takes for one are one here too. It is what Envoy makes of a path with
// normalize_path and merge_slashes, and further
//
//   - a query, a fragment, and the scheme and authority of an absolute target
//     are taken off,
//   - escapes are in upper case, and bytes that no path may hold are escaped,
//   - dot segments are found however they are spelt, `.%2e;x` among them, and
//     `//` is `/`, so that a normal path stays as it is.
//
// An empty target is "/" and "*" stays "*". It allocates nothing for a path
// that is normal already.
func NormalPath(target string) string {
	path := pathOf(target)
	if isNormal(path) {
		return path
	}
	return resolve(path)
}

// pathOf takes off what is not the path of a target.
func pathOf(target string) string {
	if i := strings.IndexAny(target, "?#"); i >= 0 {
		target = target[:i]
	}
	if target == "" {
		return "/"
	}
	if target[0] == '/' {
		return target
	}
	scheme, rest, ok := strings.Cut(target, "://")
	if !ok || !isScheme(scheme) {
		return target
	}
	if i := strings.IndexAny(rest, `/\`); i >= 0 {
		return rest[i:]
	}
	return "/"
}

func isScheme(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i] | 0x20
		if (c < 'a' || c > 'z') && (i == 0 || !strings.ContainsRune("0123456789+-.", rune(s[i]))) {
			return false
		}
	}
	return s != ""
}

// isNormal says that resolve would return path as it is. It may say no too
// often.
func isNormal(path string) bool {
	if path == "*" {
		return true
	}
	if path == "" || path[0] != '/' {
		return false
	}
	for i := 0; i < len(path); i++ {
		switch bytesOf[path[i]] {
		case slash:
			if rest := path[i+1:]; path[i] != '/' || doubles(rest) || startsDotted(rest) {
				return false
			}
		case percent:
			if !isKept(path[i:]) {
				return false
			}
		case forbidden:
			return false
		}
	}
	return true
}

func doubles(rest string) bool { return rest != "" && rest[0] == '/' }

// startsDotted says that rest begins with a dot segment. One with escaped dots
// is not normal for those alone.
func startsDotted(rest string) bool {
	n := 0
	for n < len(rest) && rest[n] == '.' {
		n++
	}
	return (n == 1 || n == 2) && (n == len(rest) || strings.IndexByte(`/\;`, rest[n]) >= 0)
}

// isKept says that s begins with an escape that stays as it is.
func isKept(s string) bool {
	if len(s) < 3 || s[1] >= 'a' || s[2] >= 'a' {
		return false
	}
	c, ok := unescape(s)
	return ok && bytesOf[c] != unreserved
}

// resolve does the work of NormalPath: escapes and dot segments first, doubled
// slashes last, as Envoy does, for their order shows: /a//../b is /a/b.
func resolve(path string) string {
	out := append(make([]byte, 0, len(path)+16), '/')
	if path != "" && bytesOf[path[0]] == slash {
		path = path[1:]
	}
	for more := true; more; {
		var segment string
		segment, path, more = cutSegment(path)
		switch dots(segment) {
		case 1:
		case 2:
			out = parent(out)
		default:
			out = appendSegment(out, segment)
			if more {
				out = append(out, '/')
			}
		}
	}
	return string(mergeSlashes(out))
}

// cutSegment returns the first segment of path. The parameters of a dot segment
// last to the next slash, whatever backslashes they hold.
func cutSegment(path string) (segment, rest string, more bool) {
	if strings.HasPrefix(path, ".;") || strings.HasPrefix(path, "..;") {
		return strings.Cut(path, "/")
	}
	for i := 0; i < len(path); i++ {
		if bytesOf[path[i]] == slash {
			return path[:i], path[i+1:], true
		}
	}
	return path, "", false
}

// dots returns 1 for a segment that stays where it is, 2 for one that goes up,
// each with or without parameters, and 0 for any other.
func dots(segment string) int {
	n := 0
	for n < 2 {
		switch {
		case strings.HasPrefix(segment, "."):
			segment = segment[1:]
		case len(segment) >= 3 && strings.EqualFold(segment[:3], "%2e"):
			segment = segment[3:]
		default:
			return ended(segment, n)
		}
		n++
	}
	return ended(segment, n)
}

func ended(rest string, n int) int {
	if rest == "" || rest[0] == ';' {
		return n
	}
	return 0
}

// parent takes the last segment off out, which ends in a slash.
func parent(out []byte) []byte {
	i := len(out) - 1
	for i > 0 && out[i-1] != '/' {
		i--
	}
	return out[:max(i, 1)]
}

func appendSegment(out []byte, segment string) []byte {
	for i := 0; i < len(segment); i++ {
		c := segment[i]
		switch bytesOf[c] {
		case percent:
			decoded, ok := unescape(segment[i:])
			if !ok {
				out = append(out, '%')
				continue
			}
			i += 2
			if bytesOf[decoded] == unreserved {
				out = appendPlain(out, decoded)
				continue
			}
			out = appendEscaped(out, decoded)
		case forbidden:
			out = appendEscaped(out, c)
		default:
			out = appendPlain(out, c)
		}
	}
	return out
}

// appendPlain appends c. Where a lone % and decoded digits would now read as
// an escape, the % is escaped, or else the path would change when read again.
func appendPlain(out []byte, c byte) []byte {
	n := len(out)
	if n >= 2 && out[n-2] == '%' && isHex(out[n-1]) && isHex(c) {
		return append(out[:n-1], '2', '5', out[n-1], c)
	}
	return append(out, c)
}

func appendEscaped(out []byte, c byte) []byte {
	const digits = "0123456789ABCDEF"
	return append(out, '%', digits[c>>4], digits[c&15])
}

func mergeSlashes(path []byte) []byte {
	out := path[:1]
	for _, c := range path[1:] {
		if c != '/' || out[len(out)-1] != '/' {
			out = append(out, c)
		}
	}
	return out
}

// unescape reads the escape that s begins with.
func unescape(s string) (byte, bool) {
	if len(s) < 3 || !isHex(s[1]) || !isHex(s[2]) {
		return 0, false
	}
	return unhex(s[1])<<4 | unhex(s[2]), true
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

// What a byte is in a path.
const (
	forbidden  uint8 = iota // escaped
	unreserved              // never escaped
	reserved                // as it came
	slash
	percent
)

var bytesOf = byteTable()

func byteTable() (table [256]uint8) {
	for c := range table {
		switch {
		case strings.IndexByte("!$&'()*+,;=:@[]", byte(c)) >= 0:
			table[c] = reserved
		case isHex(byte(c)) || 'g' <= c|0x20 && c|0x20 <= 'z' || strings.IndexByte("-._~", byte(c)) >= 0:
			table[c] = unreserved
		}
	}
	table['/'], table['\\'], table['%'] = slash, slash, percent
	return table
}
