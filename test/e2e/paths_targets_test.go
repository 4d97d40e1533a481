package e2e_test

import (
	"math/rand/v2"
	"strings"
)

// pathPieces are what odd paths are made of.
var pathPieces = []string{
	"/", "/", "/", "/", "//", "///", ".", "..", "/.", "/..", "/./", "/../", `\`, `\..`, `/..\`, "a", "b", "api", "login", "~", "-", "_",
	"%2e", "%2E", "%2e%2e", ".%2e", "%2E.", "/%2e/", "/%2e%2E/", "%2f", "%2F", "%5c", "%5C", "%252e", "%252f", "%25", "%41", "%61%70i", "%7e", "%3b", "%20", "%00",
	"%", "%4", "%zz", "%%34%31", "%c3%a9", "%C3%A9", "%ff", "%0d%0a", "%3f", "%23", "%2b", "%30",
	";", ";x", ";x=1", "..;", "/..;/", "/..;x/", "/.;y", ".%2e;x", "...", "/.../", "..a", "a..", ":", "@", "&", "=", "+", ",", "!", "$", "'", "(", ")", "*",
	"[", "]", "{", "}", "|", "^", "`", "<", ">", `"`, "?", "?a=/../b", "?x=%2e%2e//",
}

// fixedTargets are spellings that a rule was escaped by somewhere, or that
// tell two ways of reading a path apart.
var fixedTargets = []string{
	"/", "//", "///", "////", "/.", "/..", "/./", "/../", "/../..", "/a/..", "/a/../", "/a/.", "/a/./", "/a//..", "/a//../b", "/a/..//b", "//a/../b", "/a//b//..//c",
	`/\`, `\a`, `/\a`, `/a\b`, `/a\..\b`, `/a/..\b`, `/a\../b`, `/\\..\\a`, "/api//v1", "/./api", "/x/../api", "/api/.", "/api/x/..", "/api;x", "/api;x/y", "/api/;x",
	"/..;/api", "/x/..;/api", "/x/..;a=b/api", "/.;/api", "/.;x", "/..;x", "/a/.;x/b", `/a/..;x\b/c`, "/a/.%2e;x/b", "/a/%2e.;x/b", "/a/%2e%2e;x/b", "/a/%2e;x/b",
	"/%61pi", "/%41PI", "/a%70i", "/api%2fv1", "/api%2Fv1", "/api%5cv1", "/api%5Cv1", "/a%2f..%2fb", "/a/%2e%2e/b", "/a/%2e%2e%2fb", "/a/..%2fb", "/a%2f%2e%2e%2fb", "/%2e/a", "/%2e", "/%2e%2e",
	"/%252e%252e/a", "/a%252fb", "/%25%32%65", "/%%32%65", "/%2%65", "/%", "/%2", "/%zz", "/%4", "/a%", "/a%00b", "/a%20b", "/a%09b", "/a%0d%0ab", "/%c3%a9", "/%C3%A9", "/%ff", "/%7e", "/%7E", "/~",
	"/%2d%2e%5f%7e", "/%3a%40", "/%3A", "/%21%24%26%27%28%29%2a%2b%2c%3b%3d", "/!$&'()*+,;=:@", "/[a]", "/{a}", "/a|b", "/a^b", "/a`b", "/a<b>", `/a"b"`, "/a'b",
	"/?", "/??", "/a?", "/a?/../b", "/a?x=%2e%2e", "/a?%2f", "/a%3fb", "/a%23b", "/a/?b", "/a/..?b", "/a/.?b", "//?a", "/a//?b", "/.?/..", "/a?b#c", "/a#b", "/a b", "/\x7f", "/é", "/a\tb",
	"*", "a", "a/b", "a/../b", "../a", "./a", "", "?a", "http://sluice.test/a", "http://sluice.test/a/../b", "http://sluice.test//a", "http://sluice.test", "http://sluice.test?a", "HTTP://sluice.test/A%41", "https://x/a",
	"/http://sluice.test/a", "/a/http:/b", "/...", "/....", "/a/.../b", "/a/..b", "/a/b..", "/a/.b", "/a./b", "/a../b", "/..a/b", "/a/....//b", "/-/..-/_", "/.well-known/x",
}

// oddTargets are the fixed ones, and then so many that are made of pieces; the
// same ones each time.
func oddTargets() []string {
	random := rand.New(rand.NewPCG(1, 2000))
	targets := append([]string(nil), fixedTargets...)
	seen := map[string]bool{}
	for _, target := range targets {
		seen[target] = true
	}
	for len(targets) < pathCount {
		target := "/"
		for range 1 + random.IntN(9) {
			target += pathPieces[random.IntN(len(pathPieces))]
		}
		if random.IntN(4) == 0 { // a slash that comes escaped, or twice, or is another
			target = strings.Replace(target, "/", []string{"//", `/\`, "/./", "/%2e/"}[random.IntN(4)], 1)
		}
		if !seen[target] {
			seen[target] = true
			targets = append(targets, target)
		}
	}
	return targets
}
