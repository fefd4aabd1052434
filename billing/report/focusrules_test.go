package report

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// focusRule is a rule of the validator of FOCUS 1.2, in the form of
// testdata/focus-1.2-rules.json: the static rules of
// focus_validator/rules/model-1.2.json of github.com/finopsfoundation/focus_validator
// at 240cea2 (MIT, © 2023 FinOps Foundation).
type focusRule struct {
	ID, Keyword, Column, Text string
	When                      []string
	Requirement, Condition    focusCheck
}

// focusCheck is a requirement or a condition.
type focusCheck struct {
	CheckFunction, ColumnName, CheckCondition  string
	ColumnAName, ColumnBName, ResultColumnName string
	ModelRuleID                                string `json:"ModelRuleId"`
	Value                                      any
	ExpectedCount                              int
	Items                                      []focusCheck
}

// notApplicable are optional features in the rules that Basalt does not have.
var notApplicable = []string{"AVAILABILITY_ZONE_SUPPORTED", "CAPACITY_RESERVATION_SUPPORTED", "PRICING_BILLING_CURRENCY_DIFFERENCES_SUPPORTED",
	"REGION_SUPPORTED", "TAGGING_SUPPORTED", "VIRTUAL_CURRENCY_SUPPORTED"}

// mistaken are rules whose check contradicts their own text and the specification;
// TestFOCUSIsValid checks the text.
var mistaken = map[string]string{
	"CommitmentDiscountStatus-C-003-C": "the text wants null where CommitmentDiscountId is null, the check wants a value",
	"CommitmentDiscountStatus-C-004-C": "the text is of rows with a CommitmentDiscountId, the condition of those without",
	"CommitmentDiscountStatus-C-005-M": "the specification allows Used and Unused, the check Active, Expired and Pending",
}

// focusTable is a data set that rules are evaluated on. An empty cell is null.
type focusTable struct {
	rules   map[string]focusRule
	columns []string
	rows    []map[string]string
}

func readFOCUS(t *testing.T, text string) *focusTable {
	t.Helper()
	all, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	table := &focusTable{rules: focusRules(t), columns: all[0]}
	for _, r := range all[1:] {
		row := map[string]string{}
		for i, c := range all[0] {
			row[c] = r[i]
		}
		table.rows = append(table.rows, row)
	}
	return table
}

func focusRules(t *testing.T) map[string]focusRule {
	t.Helper()
	raw, err := os.ReadFile("testdata/focus-1.2-rules.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []focusRule
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	rules := map[string]focusRule{}
	for _, r := range all {
		rules[r.ID] = r
	}
	return rules
}

// broken returns the rules that do not hold, each with its row. Evaluation starts with
// the rules that no other refers to; a referenced rule applies where the referring
// rule's condition holds.
func (f *focusTable) broken() (out []string, tried int) {
	referred := map[string]bool{}
	for _, r := range f.rules {
		for _, id := range r.Requirement.refers(nil) {
			referred[id] = true
		}
	}
	seen := map[string]bool{}
	for _, r := range f.rules {
		if !referred[r.ID] {
			f.try(r, nil, seen, func(s string) { out = append(out, s) })
		}
	}
	slices.Sort(out)
	return slices.Compact(out), len(seen)
}

func (c focusCheck) refers(ids []string) []string {
	if c.ModelRuleID != "" {
		ids = append(ids, c.ModelRuleID)
	}
	for _, i := range c.Items {
		ids = i.refers(ids)
	}
	return ids
}

func (f *focusTable) try(r focusRule, when []focusCheck, seen map[string]bool, report func(string)) {
	_, wrong := mistaken[r.ID]
	presence := r.Requirement.CheckFunction == "ColumnPresent"
	absent := !slices.Contains(f.columns, r.Column) && r.Column != "" && regexp.MustCompile(`-C-\d`).MatchString(r.ID)
	if wrong || absent || r.Keyword == "MAY" || r.Keyword == "RECOMMENDED" && !presence ||
		slices.ContainsFunc(r.When, func(c string) bool { return slices.Contains(notApplicable, c) }) {
		return
	}
	seen[r.ID] = true
	if r.Condition.CheckFunction != "" {
		when = append(slices.Clone(when), r.Condition)
	}
	if r.Requirement.CheckFunction == "AND" && len(r.Requirement.refers(nil)) > 0 {
		for _, id := range r.Requirement.refers(nil) {
			if next, static := f.rules[id]; static {
				f.try(next, when, seen, report)
			}
		}
		return
	}
	if presence {
		if !slices.Contains(f.columns, r.Requirement.ColumnName) {
			report(r.ID + ": " + r.Text)
		}
		return
	}
	for i, row := range f.rows {
		if slices.ContainsFunc(when, func(c focusCheck) bool { return !f.holds(c, row) }) {
			continue
		}
		if !f.holds(r.Requirement, row) {
			report(fmt.Sprintf("%s: %s (row %d: %q)", r.ID, r.Text, i+1, row[r.Column]))
		}
	}
}

var (
	focusStamp  = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`)
	focusNumber = regexp.MustCompile(`^-?\d+(\.\d+)?(E-?\d+)?$`)
	isoCurrency = regexp.MustCompile(`^[A-Z]{3}$`)
	// focusUnits is the validator's pattern for the specification's Unit Format.
	focusUnits = func() *regexp.Regexp {
		size, one, many := `([KMGTPE]?i?[bB])`, `(Year|Month|Day|Hour|Minute|Second)`, `(Years|Months|Days|Hours|Minutes|Seconds)`
		count := `([A-Za-z][A-Za-z0-9]*(\s+[A-Za-z][A-Za-z0-9]*)*)`
		any := `(` + size + `|` + count + `)`
		return regexp.MustCompile(`^(` + any + `|` + any + `-` + many + `|` + any + `/` + one + `|[0-9]+ ` + any + `|` + any + `/[0-9]+ ` + many + `)$`)
	}()
)

// holds reports whether a check succeeds for a row.
func (f *focusTable) holds(c focusCheck, row map[string]string) bool {
	if c.ColumnName == "" {
		c.ColumnName = c.CheckCondition
	}
	v := row[c.ColumnName]
	switch c.CheckFunction {
	case "AND":
		return !slices.ContainsFunc(c.Items, func(i focusCheck) bool { return !f.holds(i, row) })
	case "OR":
		if c.allowed() && row[c.Items[0].ColumnName] == "" {
			return true
		}
		return slices.ContainsFunc(c.Items, func(i focusCheck) bool { return f.holds(i, row) })
	case "CheckModelRule":
		r := f.rules[c.ModelRuleID]
		return r.Condition.CheckFunction != "" && !f.holds(r.Condition, row) || f.holds(r.Requirement, row)
	case "CheckValue":
		return is(v, c.Value)
	case "CheckNotValue":
		return !is(v, c.Value)
	case "CheckSameValue":
		return row[c.ColumnAName] == row[c.ColumnBName]
	case "CheckNotSameValue":
		return row[c.ColumnAName] != row[c.ColumnBName]
	case "CheckDistinctCount":
		return f.distinct(c.ColumnAName, row[c.ColumnAName], c.ColumnBName) == c.ExpectedCount
	case "ColumnByColumnEqualsColumnValue":
		return product(row[c.ColumnAName], row[c.ColumnBName], row[c.ResultColumnName])
	}
	return v == "" || wellFormed(c, v)
}

// allowed reports whether the check lists the values of a column; whether null is
// allowed as well is in separate rules.
func (c focusCheck) allowed() bool {
	return !slices.ContainsFunc(c.Items, func(i focusCheck) bool {
		return i.CheckFunction != "CheckValue" || i.Value == nil || i.ColumnName != c.Items[0].ColumnName
	})
}

// wellFormed reports whether a non-null value has the required form.
func wellFormed(c focusCheck, v string) bool {
	switch c.CheckFunction {
	case "TypeString", "FormatString":
		return strings.TrimSpace(v) != ""
	case "TypeDecimal", "FormatNumeric", "CheckDecimalValue":
		return focusNumber.MatchString(v)
	case "CheckGreaterOrEqualThanValue":
		return !strings.HasPrefix(v, "-")
	case "TypeDateTime", "FormatDateTime":
		_, err := time.Parse(time.RFC3339, v)
		return err == nil && focusStamp.MatchString(v)
	case "FormatCurrency", "CheckNationalCurrency":
		return isoCurrency.MatchString(v)
	case "FormatUnit":
		return focusUnits.MatchString(v)
	case "FormatKeyValue":
		var pairs map[string]any
		return json.Unmarshal([]byte(v), &pairs) == nil
	}
	panic("no check " + c.CheckFunction)
}

func is(v string, want any) bool {
	switch want := want.(type) {
	case nil:
		return v == ""
	case float64:
		n, ok := new(big.Rat).SetString(v)
		return ok && n.Cmp(new(big.Rat).SetFloat64(want)) == 0
	}
	return v == want
}

// distinct returns the number of values of column other in rows where column of has the
// value.
func (f *focusTable) distinct(of, value, other string) int {
	seen := map[string]bool{}
	for _, row := range f.rows {
		if row[of] == value {
			seen[row[other]] = true
		}
	}
	return len(seen)
}

// product reports whether a · b equals c to the micro, the last unit of an amount. (The
// validator compares floating-point numbers, in which 0.1 · 3 is not 0.3.)
func product(a, b, c string) bool {
	x, okX := new(big.Rat).SetString(a)
	y, okY := new(big.Rat).SetString(b)
	z, okZ := new(big.Rat).SetString(c)
	if !okX || !okY || !okZ {
		return true // one is null
	}
	return x.Mul(x, y).Sub(x, z).Abs(x).Cmp(big.NewRat(1, 1_000_000)) <= 0
}
