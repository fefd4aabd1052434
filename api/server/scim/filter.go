package scim

import (
	"fmt"
	"slices"
	"strings"

	filter "github.com/scim2/filter-parser/v2"
)

// Limits of a filter, which the parser reads recursively. Directories send one comparison,
// or two.
const (
	maxFilter = 1024 // bytes
	maxPath   = 256  // bytes, of which a patch has many
	maxNested = 8    // parentheses and brackets
	maxTerms  = 32   // comparisons
)

// values are the values of an attribute; exact means that case matters.
type values struct {
	all   []string
	exact bool
}

// Filter selects resources; nil selects all.
type Filter struct{ root filter.Expression }

// UserFilter parses a filter of users.
func UserFilter(text string) (*Filter, error) { return parseFilter(text, &User{}) }

// GroupFilter parses a filter of groups.
func GroupFilter(text string) (*Filter, error) { return parseFilter(text, &Group{}) }

func parseFilter(text string, of resource) (*Filter, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	if err := checkExpression(text, maxFilter, InvalidFilter); err != nil {
		return nil, err
	}
	root, err := filter.ParseFilter([]byte(text))
	if err != nil {
		return nil, invalid(InvalidFilter, "the filter is not valid: want for example userName eq \"ann@example.com\"")
	}
	f := &Filter{root}
	// The attributes and operators do not depend on the resource.
	if _, err := match(root, "", of); err != nil {
		return nil, err
	}
	return f, nil
}

// checkExpression checks the size of a filter or path before the parser sees it.
func checkExpression(text string, most int, typ string) error {
	if len(text) > most {
		return invalid(typ, "has %d bytes, want at most %d", len(text), most)
	}
	depth, deepest, terms, quoted := 0, 0, 1, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '(' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == ')' || c == ']':
			depth--
		}
	}
	lower := strings.ToLower(text)
	terms += strings.Count(lower, " and ") + strings.Count(lower, " or ")
	if deepest > maxNested || terms > maxTerms {
		return invalid(typ, "has %d comparisons nested %d deep, want at most %d and %d", terms, deepest, maxTerms, maxNested)
	}
	return nil
}

// Equal returns the value that an attribute must be equal to in all resources that the
// filter selects, for a lookup in an index; ok is false if there is none.
func (f *Filter) Equal(attribute string) (value string, ok bool) {
	if f == nil {
		return "", false
	}
	return equal(f.root, strings.ToLower(attribute))
}

func equal(e filter.Expression, attribute string) (string, bool) {
	switch e := e.(type) {
	case *filter.AttributeExpression:
		value, isText := e.CompareValue.(string)
		return value, isText && e.Operator == filter.EQ && nameOf("", e.AttributePath) == attribute
	case *filter.LogicalExpression:
		if e.Operator != filter.AND {
			return "", false
		}
		if v, ok := equal(e.Left, attribute); ok {
			return v, true
		}
		return equal(e.Right, attribute)
	}
	return "", false
}

// SelectsUser reports whether the filter selects a user.
func (f *Filter) SelectsUser(u User) bool { return f.selects(&u) }

// SelectsGroup reports whether the filter selects a group.
func (f *Filter) SelectsGroup(g Group) bool { return f.selects(&g) }

func (f *Filter) selects(r resource) bool {
	if f == nil {
		return true
	}
	ok, err := match(f.root, "", r)
	return ok && err == nil
}

// match evaluates an expression; below is the attribute whose values it is about, empty
// for the resource itself.
func match(e filter.Expression, below string, r resource) (bool, error) {
	switch e := e.(type) {
	case *filter.AttributeExpression:
		v, ok := r.attribute(nameOf(below, e.AttributePath))
		if !ok {
			return false, invalid(InvalidFilter, "attribute %.64q is not known", e.AttributePath.String())
		}
		return compare(e, v)
	case *filter.LogicalExpression:
		left, err := match(e.Left, below, r)
		if err != nil {
			return false, err
		}
		right, err := match(e.Right, below, r)
		if e.Operator == filter.AND {
			return left && right, err
		}
		return left || right, err
	case *filter.NotExpression:
		ok, err := match(e.Expression, below, r)
		return !ok, err
	case *filter.ValuePath:
		if below != "" {
			return false, invalid(InvalidFilter, "value filters cannot be nested")
		}
		return match(e.ValueFilter, nameOf("", e.AttributePath), r)
	}
	return false, invalid(InvalidFilter, "the filter is not supported")
}

// nameOf returns the name of an attribute in lower case, without the URI of its schema.
func nameOf(below string, p filter.AttributePath) string {
	name := p.AttributeName
	if p.SubAttribute != nil {
		name += "." + *p.SubAttribute
	}
	if below != "" {
		name = below + "." + name
	}
	if uri := strings.TrimSuffix(p.URI(), ":"); uri != "" && !strings.EqualFold(uri, UserSchema) && !strings.EqualFold(uri, GroupSchema) {
		name = uri + ":" + name
	}
	return strings.ToLower(name)
}

func compare(e *filter.AttributeExpression, v values) (bool, error) {
	if e.Operator == filter.PR {
		return len(v.all) > 0, nil
	}
	want := ""
	switch x := e.CompareValue.(type) {
	case nil: // null is no value
		return (len(v.all) == 0) == (e.Operator == filter.EQ), nil
	case string, bool, int, float64:
		want = fmt.Sprint(x)
	default:
		return false, invalid(InvalidFilter, "a value of the filter is neither text, number nor Boolean")
	}
	fold := func(s string) string {
		if v.exact {
			return s
		}
		return strings.ToLower(s)
	}
	want = fold(want)
	any := func(f func(s, want string) bool) bool {
		return slices.ContainsFunc(v.all, func(s string) bool { return f(fold(s), want) })
	}
	same := func(s, want string) bool { return s == want }
	switch e.Operator {
	case filter.EQ:
		return any(same), nil
	case filter.NE:
		return !any(same), nil
	case filter.CO:
		return any(strings.Contains), nil
	case filter.SW:
		return any(strings.HasPrefix), nil
	case filter.EW:
		return any(strings.HasSuffix), nil
	}
	return false, invalid(InvalidFilter, "operator %s is not supported", e.Operator)
}
