package cli

import (
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// kindWords returns the words that help uses for an object of a kind: "GPU pool" for GPUPool.
// Words in capitals and names stay as they are.
func kindWords(k api.Kind) string {
	if k == api.KindCard {
		return "payment card" // a GPU is a card too
	}
	words := splitKind(string(k))
	for i, w := range words {
		if strings.ToUpper(w) != w && w != "Ceph" {
			words[i] = strings.ToLower(w)
		}
	}
	return strings.Join(words, " ")
}

// splitKind splits at each capital that begins a word: APIKey is API and Key.
func splitKind(name string) []string {
	var words []string
	start := 0
	for i := 1; i < len(name); i++ {
		begins := isUpper(name[i]) && (!isUpper(name[i-1]) || i+1 < len(name) && !isUpper(name[i+1]))
		if begins {
			words = append(words, name[start:i])
			start = i
		}
	}
	return append(words, name[start:])
}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

// aKind returns kindWords with its article.
func aKind(k api.Kind) string {
	words := kindWords(k)
	if strings.ContainsRune("aeioAEIO", rune(words[0])) {
		return "an " + words
	}
	return "a " + words
}

// kindsWords returns kindWords in the plural.
func kindsWords(k api.Kind) string { return kindWords(k) + "s" }
