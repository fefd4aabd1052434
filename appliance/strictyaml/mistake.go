package strictyaml

import (
	"fmt"
	"sort"
	"strings"
)

// Mistake is a mistake in a file: its position, the reason, and a correction.
type Mistake struct {
	Line, Column int
	Field        string
	Reason       string
	Instead      string
}

func (m Mistake) String() string {
	s := fmt.Sprintf("line %d, column %d: ", m.Line, m.Column)
	if m.Field != "" {
		s += m.Field + ": "
	}
	s += m.Reason
	if m.Instead != "" {
		s += "\n    " + m.Instead
	}
	return s
}

// Mistakes are the mistakes of a file in the order of their positions.
type Mistakes []Mistake

func (ms Mistakes) Error() string {
	lines := make([]string, len(ms))
	for i, m := range ms {
		lines[i] = m.String()
	}
	return strings.Join(lines, "\n")
}

func (ms Mistakes) sorted() Mistakes {
	sort.SliceStable(ms, func(i, j int) bool {
		if ms[i].Line != ms[j].Line {
			return ms[i].Line < ms[j].Line
		}
		return ms[i].Column < ms[j].Column
	})
	return ms
}

// closest returns the word that is most similar to what was written, if one is similar
// enough to be intended.
func closest(wrote string, words []string) (string, bool) {
	best, distance := "", 3
	for _, w := range words {
		if d := editDistance(strings.ToLower(wrote), strings.ToLower(w)); d < distance {
			best, distance = w, d
		}
	}
	return best, best != "" && distance < len(best)
}

// editDistance returns the Levenshtein distance of two words, which Clip shortens
// first.
func editDistance(a, b string) int {
	a, b = Clip(a), Clip(b)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			diagonal, row[j] = row[j], min(row[j]+1, row[j-1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}

// Clip shortens text of a file to what a mistake quotes.
func Clip(s string) string {
	const most = 60
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
