package api

import "strings"

// LabelSelector selects objects by their labels.
type LabelSelector []labelTerm

// labelTerm is one condition: a key exists, or has a value, or the negation of either.
type labelTerm struct {
	key, value string
	valued     bool
	not        bool
}

// maxSelectorBytes and maxSelectorTerms bound a selector.
const (
	maxSelectorBytes = 1024
	maxSelectorTerms = 16
)

// ParseLabelSelector parses comma-separated conditions: key=value, key!=value, key
// (exists) or !key. An empty text selects all. Errors have code CodeInvalid.
func ParseLabelSelector(text string) (LabelSelector, error) {
	return parseSelector("labelSelector", text)
}

// parseSelector parses the conditions of a query parameter.
func parseSelector(parameter, text string) (LabelSelector, error) {
	if text == "" {
		return nil, nil
	}
	parts := strings.Split(text, ",")
	if len(text) > maxSelectorBytes || len(parts) > maxSelectorTerms {
		return nil, invalid(parameter, "has %d conditions in %d bytes, want at most %d in %d", len(parts), len(text), maxSelectorTerms, maxSelectorBytes)
	}
	var all LabelSelector
	for _, part := range parts {
		part = strings.TrimSpace(part)
		key, value, valued := strings.Cut(part, "=")
		key, not := strings.CutSuffix(key, "!")
		if bare, without := strings.CutPrefix(key, "!"); without && !valued {
			key, not = bare, true
		}
		key = strings.TrimSpace(key)
		if key == "" || strings.Contains(key, "!") || not && !valued && !strings.HasPrefix(part, "!") {
			return nil, invalid(parameter, "%q is not a valid condition", clip(part)).WithHint("want key=value, key!=value, key or !key, separated by commas")
		}
		all = append(all, labelTerm{key, strings.TrimSpace(strings.TrimPrefix(value, "=")), valued, not})
	}
	return all, nil
}

// Matches reports whether labels meet all conditions. Labels without the key meet
// key!=value.
func (s LabelSelector) Matches(labels map[string]string) bool {
	for _, t := range s {
		value, there := labels[t.key]
		if (there && (!t.valued || value == t.value)) == t.not {
			return false
		}
	}
	return true
}
