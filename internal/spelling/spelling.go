// Package spelling finds the word that somebody meant who wrote another. It
// knows nothing of what the words are for.
package spelling

import "strings"

// longest is the most letters of a word that is looked at: nobody writes a
// longer one.
const longest = 64

// bare is a word without what is between its parts, which others write in their
// own way.
var bare = strings.NewReplacer("-", "", "_", "", ".", "")

// Nearest returns the word of known that s is most likely a misspelling of, the
// first of several, or "". A -, _ or . more or less is no fault.
func Nearest(s string, known []string) string {
	if len(s) > longest {
		return ""
	}
	s = bare.Replace(s)
	best, least := "", min(2, len(s)/2)+1
	for _, word := range known {
		if n := edits(s, bare.Replace(word)); n < least {
			best, least = word, n
		}
	}
	return best
}

// DidYouMean is a question after Nearest, to end a message with, or "".
func DidYouMean(s string, known []string) string {
	if meant := Nearest(s, known); meant != "" {
		return "; did you mean " + meant + "?"
	}
	return ""
}

// edits counts the letters to put in, take out, change, or swap with their
// neighbour to make b of a.
func edits(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(last[j]+1, row[j-1]+1, change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
