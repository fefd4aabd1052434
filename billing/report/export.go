package report

import (
	"encoding/csv"
	"io"
	"iter"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// WriteUse writes usage by the hour as CSV.
func WriteUse(w io.Writer, org api.OrganizationID, uses iter.Seq2[api.Use, error]) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"hour", "organization", "project", "resource", "resourceName", "meter", "quantity"}) // Flush reports errors
	for u, err := range uses {
		if err != nil {
			return err
		}
		if err := out.Write([]string{u.Hour.UTC().Format(time.RFC3339), cell(string(org)), cell(u.Project), cell(u.Resource),
			cell(u.ResourceName), cell(string(u.Meter)), strconv.FormatInt(u.Quantity, 10)}); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// money formats micros in the currency.
func money(micros int64) string { return decimal(big.NewRat(micros, 1_000_000), 6) }

// decimal formats a number with at most the given decimals, without trailing zeros.
func decimal(r *big.Rat, digits int) string {
	return strings.TrimSuffix(strings.TrimRight(r.FloatString(digits), "0"), ".")
}

// cell returns text that a spreadsheet treats as text: names that users choose must not
// become formulas when an operator opens the file.
func cell(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}
